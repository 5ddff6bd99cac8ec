"""Transfers in the inbox: those without a page say which command shows them and their answers."""

import pytest
from temporalio import workflow
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from contracts.transfers import FILE_JOB
from tests.gateway.transfers.conftest import TransferGateway
from tests.support.waiting import eventually
from workflows import attributes

pytestmark = pytest.mark.asyncio(loop_scope="session")

TASK_QUEUE = "jobs-of-the-inbox"
ID = "c0ffee42" * 8


@workflow.defn(name=FILE_JOB)
class Job:
    """As far as the inbox sees one."""

    @workflow.run
    async def run(self) -> None:
        workflow.upsert_search_attributes(
            attributes.waiting("parked", workflow.now(), attributes.OPERATORS)
        )
        await workflow.wait_condition(lambda: False)


async def test_a_job_without_a_page_names_the_command_that_shows_it(
    transfers: TransferGateway, temporal: WorkflowEnvironment
) -> None:
    async with Worker(temporal.client, task_queue=TASK_QUEUE, workflows=[Job]):
        run = await temporal.client.start_workflow(
            Job.run,
            id=f"transfer/{ID}/job",
            task_queue=TASK_QUEUE,
            search_attributes=attributes.at_start("transfers", "jobs", "A"),
        )
        browser, _ = transfers.browser()
        async with browser:

            async def is_shown() -> bool:
                return "Transfer c0ffee42" in (await browser.get("/")).text

            await eventually(is_shown)
            page = (await browser.get("/")).text
        await run.terminate()
    assert '<code class="small">docflow show c0ffee42</code>' in page
