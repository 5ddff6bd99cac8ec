"""Imports on workers of their own, with every activity scripted."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio.client import (
    WorkflowHandle,
)

from tests.support.imports.scripted import (
    ScriptedImport,
)
from tests.support.waiting import eventually
from workflows.imports.document_import import DocumentImport
from workflows.imports.messages import ImportMessage
from workflows.imports.runs import ImportInput, ImportResult
from workflows.shared import attributes


@dataclass
class Imports:
    """Starts imports on a worker of the test's own."""

    server: Any
    run_worker: Any

    @asynccontextmanager
    async def running(
        self, script: ScriptedImport, message: ImportMessage, park: timedelta = timedelta(days=14)
    ) -> AsyncIterator[WorkflowHandle[Any, ImportResult]]:
        """Start one, and its worker."""
        queue = f"imports-{uuid.uuid4().hex}"
        async with self.run_worker(queue, [DocumentImport], script.activities()):
            yield await self.server.client.start_workflow(
                DocumentImport.run,
                ImportInput(message=message, park_for_seconds=int(park.total_seconds())),
                id=message.workflow_id,
                task_queue=queue,
                search_attributes=attributes.at_start("imports", "equipment", "p1"),
            )

    async def parked(self, handle: WorkflowHandle[Any, Any]) -> None:
        """Wait until the run is parked."""

        async def is_parked() -> bool:
            return bool((await handle.query(DocumentImport.status)).next_steps)

        await eventually(is_parked)
