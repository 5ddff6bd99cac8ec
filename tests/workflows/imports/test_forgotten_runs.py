"""What Temporal has forgotten, the status row still answers: real intake, steps and tables."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from activities.imports.lifecycle import DeleteImports, ImportLifecycle
from activities.imports.store import SqlImportStore
from activities.imports.views import SqlImportTasks
from activities.shared.notifications import NotificationSending
from adapters.database.engine import open_database
from adapters.database.records import SqlRejectedMessages
from adapters.temporal import TemporalRunEnds
from stack.temporal import TUNING, temporal_binary
from tests.support.fresh_database import fresh_url
from tests.support.memory.blobs import MemoryBlobs
from tests.support.scripted import scripted
from tests.support.waiting import eventually
from workers.imports.intake import ImportIntake
from workers.shared.plugin import docflow_plugin
from workers.shared.register import activities_of
from workers.shared.services.bodies import DeadLetter, Settle
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import TASK_QUEUE, ImportState
from workflows.shared import attributes
from workflows.shared.notifications import NotificationReceipt
from workflows.shared.run_notifications import NoticeDelivery

pytestmark = pytest.mark.asyncio(loop_scope="session")

ID = "import/P1/forgotten"
QUEUE = "import-queue"


class Installation:
    """An intake and a worker, with tables of their own."""

    def __init__(self, client: Client, database: Any) -> None:
        self.client = client
        self.store, self.tasks = SqlImportStore(database), SqlImportTasks(database)
        self.rejected = SqlRejectedMessages(database)
        self.intake = ImportIntake(client, self.rejected, queue=QUEUE)
        ends = TemporalRunEnds(client)
        self.activities = [
            ImportLifecycle(self.store, MemoryBlobs(), ends, self.rejected),
            DeleteImports(self.store),
        ]

    async def send(self, service: str, message_id: str) -> Any:
        body = (
            '{"document_type": "mto_delete", "project_id": "P1", "task_id": "forgotten", '
            f'"service_id": "{service}"}}'
        )
        return await self.intake.accept(body.encode(), 0, message_id)

    async def ended(self) -> WorkflowExecutionStatus:
        handle = self.client.get_workflow_handle(ID)

        async def is_over() -> bool:
            return (await handle.describe()).close_time is not None

        await eventually(is_over)
        found = await handle.describe()
        assert found.status is not None
        return found.status


@asynccontextmanager
async def site_on(client: Client, database: Any) -> AsyncIterator[Installation]:
    site = Installation(client, database)
    steps = [
        *activities_of(*site.activities),
        *scripted(NotificationSending, results={"send": NotificationReceipt()}).activities(),
    ]
    async with Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[DocumentImport, NoticeDelivery],
        activities=steps,
        max_cached_workflows=0,
    ):
        yield site


async def test_another_message_under_the_key_of_a_forgotten_run_is_refused(
    server: Any, tmp_path: Path
) -> None:
    url = fresh_url()
    forgetful = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(),
        dev_server_extra_args=[w for value in TUNING for w in ("--dynamic-config-value", value)],
        search_attributes=attributes.ALL,
        plugins=[docflow_plugin()],
    )
    async with forgetful, open_database(url) as database:
        async with site_on(server.client, database) as site:
            assert await site.send("S1", "m-1") == Settle(ID)
            assert await site.ended() is WorkflowExecutionStatus.COMPLETED

        # Another server knows as little of the run as one whose retention is over.
        async with site_on(forgetful.client, database) as site:
            assert await site.send("S2", "m-2") == Settle(ID)
            assert await site.ended() is WorkflowExecutionStatus.FAILED
            [refused] = await site.rejected.list()
            assert (refused.queue, refused.message_id) == (QUEUE, "m-2")
            assert refused.reason == "KeyReused" and '"service_id":"S2"' in refused.body
            row = await site.tasks.get("P1", "forgotten")
            assert row is not None and row.state is ImportState.COMPLETED
            # The run that was refused answers for the message that has the key.
            assert isinstance(await site.send("S2", "m-2"), DeadLetter)
            assert await site.send("S1", "m-1") == Settle(ID, duplicate=True)
