"""Transfers in the inbox: each with its page, and one line for those that wait for one cause."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from temporalio import workflow
from temporalio.client import WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from tests.gateway.transfers.conftest import TransferGateway
from tests.support.transfers.events import a_transfer
from tests.support.waiting import eventually
from workflows.shared import attributes
from workflows.transfers.events import FILE_JOB, TransferStatus
from workflows.transfers.paths import printable
from workflows.transfers.runs import TransferRetry, TransferView, file_job_id

pytestmark = pytest.mark.asyncio(loop_scope="session")

TASK_QUEUE = "jobs-of-the-inbox"
HOSTILE = "<img src=x onerror=alert(1)>'; it's \u202ereversed.csv"


@workflow.defn(name=FILE_JOB)
class Job:
    """As far as the inbox and its answers see one."""

    def __init__(self) -> None:
        self._by: str | None = None

    @workflow.run
    async def run(self, id: str) -> None:
        workflow.upsert_search_attributes(
            attributes.waiting("parked", workflow.now(), attributes.OPERATORS)
        )
        await workflow.wait_condition(lambda: self._by is not None)

    @workflow.update(name="retry")
    async def retry(self, answer: TransferRetry) -> TransferView:
        self._by = answer.by
        return TransferView(transfer_id="a" * 64, status=TransferStatus.READ_MESSAGE)


@asynccontextmanager
async def parked(
    transfers: TransferGateway, temporal: WorkflowEnvironment, reasons: Sequence[str]
) -> AsyncGenerator[Sequence[str]]:
    """Runs that are parked, and their rows; the ids of their transfers."""
    ids = [uuid4().hex * 2 for _ in reasons]
    async with Worker(temporal.client, task_queue=TASK_QUEUE, workflows=[Job]):
        for id, reason in zip(ids, reasons, strict=True):
            await temporal.client.start_workflow(
                Job.run,
                id,
                id=file_job_id(id),
                task_queue=TASK_QUEUE,
                search_attributes=attributes.at_start("transfers", "jobs", "A"),
            )
            row = a_transfer(
                id,
                TransferStatus.READ_MESSAGE,
                queue="jobs",
                file=HOSTILE,
                reason=f"parked: {reason}",
            )
            await transfers.store.record(row)
        try:
            yield ids
        finally:
            for id in ids:
                run = temporal.client.get_workflow_handle(file_job_id(id))
                if (await run.describe()).status is WorkflowExecutionStatus.RUNNING:
                    await run.terminate()


async def inbox(transfers: TransferGateway, *texts: str) -> str:
    """The page, once it shows something."""
    browser, _ = await transfers.browser()
    async with browser:
        seen: list[str] = []

        async def is_shown() -> bool:
            seen.append((await browser.get("/")).text)
            return all(text in seen[-1] for text in texts)

        await eventually(is_shown)
        return seen[-1]


async def test_a_job_is_linked_to_its_page_and_to_its_answers(
    transfers: TransferGateway, temporal: WorkflowEnvironment
) -> None:
    async with parked(transfers, temporal, ["refused"]) as [id]:
        page = await inbox(transfers, f"Transfer {id[:8]}")
    assert f'href="/transfers/{id}"' in page
    assert f'href="/transfers/{id}#answer"' in page


async def test_jobs_of_one_cause_are_one_line_and_have_one_answer(
    transfers: TransferGateway, temporal: WorkflowEnvironment
) -> None:
    refused = "acme refuses {} to our token env:TOKEN: it answered 403"
    names = ["in/a.csv", HOSTILE, "in/it's.csv", "in/100.csv"]
    reasons = [refused.format(printable(name)) for name in names]
    other = refused.format("'in/a.csv'").replace("acme", "other")
    async with parked(transfers, temporal, [*reasons, other]) as ids:
        page = await inbox(transfers, "4 runs for one cause", f"Transfer {ids[-1][:8]}")
        assert not [id for id in ids[:-1] if id in page]
        assert "acme refuses … to our token env:TOKEN: it answered 403" in page
        address = re.search(r'href="(/transfers/waiting/[0-9a-f]+)"', page)
        assert address is not None
        browser, form = await transfers.browser()
        async with browser:
            group = (await browser.get(address[1])).text
            assert all(id in group for id in ids[:-1]) and ids[-1] not in group
            assert "<img" not in group and "&lt;img" in group
            foreign = await browser.post(address[1], data={"csrf": "x", "decision": "retry"})
            odd = await browser.post(address[1], data={**form, "decision": "skip"})
            done = await browser.post(address[1], data={**form, "decision": "retry"})
        assert (foreign.status_code, odd.status_code, done.status_code) == (403, 422, 200)
        assert "4 transfers have the answer" in done.text
        for id in ids[:-1]:
            await temporal.client.get_workflow_handle(file_job_id(id)).result()


async def test_what_has_not_taken_the_answer_is_named(
    transfers: TransferGateway, temporal: WorkflowEnvironment
) -> None:
    reasons = [f"partner p: 'in/{number}': no space" for number in range(3)]
    async with parked(transfers, temporal, reasons) as ids:
        page = await inbox(transfers, "3 runs for one cause")
        address = re.search(r'href="(/transfers/waiting/[0-9a-f]+)"', page)
        assert address is not None
        await temporal.client.get_workflow_handle(file_job_id(ids[0])).terminate()
        browser, form = await transfers.browser()
        async with browser:
            done = await browser.post(address[1], data={**form, "decision": "retry"})
    assert done.status_code == 503
    assert "2 transfers have the answer" in done.text
    assert "1 transfer has not taken it" in done.text and ids[0] in done.text


async def test_groups_are_for_operators(transfers: TransferGateway) -> None:
    browser, form = await transfers.browser("mapper")
    async with browser:
        shown = await browser.get("/transfers/waiting/0123456789abcdef")
        answered = await browser.post(
            "/transfers/waiting/0123456789abcdef", data={**form, "decision": "retry"}
        )
    assert (shown.status_code, answered.status_code) == (404, 404)
