"""The product's own three steps of a table import, called without Temporal."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from temporalio.testing import ActivityEnvironment

from activities.imports.lifecycle import ImportLifecycle
from activities.imports.rows import RowImports
from adapters.database.imports.store import SqlImportStore
from adapters.memory.runs import MemoryRuns
from contracts.imports import (
    Closing,
    HandlerInput,
    HandlerOutcome,
    ImportMessage,
    ImportOrder,
    ImportPlan,
    ImportState,
)
from workers.collector import tune_collector
from workers.resources.common import Resources, open_resources
from workers.settings.imports import RunSettings

R = TypeVar("R")


class Steps:
    """prepare, load and finish over the resources of a worker."""

    def __init__(self, resources: Resources, settings: RunSettings) -> None:
        store, blobs = SqlImportStore(resources.database), resources.blobs
        # No document has an idempotency key, so that no other run is asked for.
        self._lifecycle = ImportLifecycle(
            store, blobs, MemoryRuns(), resources.rejected, settings.small_document_bytes
        )
        self._rows = RowImports(
            store, blobs, resources.documents, resources.reports, resources.scratch
        )

    async def prepare(self, message: ImportMessage) -> ImportPlan:
        """The plan of an import."""
        preparation = await _run(self._lifecycle.prepare, ImportOrder(message=message))
        assert preparation.plan is not None, preparation.skip
        return preparation.plan

    async def load(self, message: ImportMessage, plan: ImportPlan) -> HandlerOutcome:
        """The rows of an import."""
        return await _run(self._rows.load_rows, HandlerInput(message=message, plan=plan))

    async def finish(
        self, message: ImportMessage, plan: ImportPlan, outcome: HandlerOutcome
    ) -> None:
        """The record of an import."""
        closing = Closing(message=message, plan=plan, state=ImportState.COMPLETED, outcome=outcome)
        await _run(self._lifecycle.finish, closing)


async def _run(step: Callable[[Any], Awaitable[R]], argument: Any) -> R:
    return await ActivityEnvironment().run(step, argument)


@asynccontextmanager
async def open_steps(environment: dict[str, str]) -> AsyncGenerator[Steps]:
    """The steps, wired as a worker wires them."""
    async with open_resources(environment) as resources:
        tune_collector()
        yield Steps(resources, RunSettings.read(environment))
