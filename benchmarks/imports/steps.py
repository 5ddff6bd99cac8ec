"""The product's own steps of a table import, called without Temporal."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from temporalio.testing import ActivityEnvironment

from activities.imports.lifecycle import ImportLifecycle, SmallTables
from activities.imports.rows import RowImports
from activities.imports.store import SqlImportStore
from tests.support.memory.runs import MemoryRuns
from workers.imports.settings import RunSettings
from workers.shared.machine import tune_collector
from workers.shared.resources import Resources, open_resources
from workflows.imports.messages import ImportMessage
from workflows.imports.runs import (
    Closing,
    HandlerInput,
    HandlerOutcome,
    ImportInput,
    ImportPlan,
    ImportState,
    Preparation,
)

R = TypeVar("R")


class Steps:
    """prepare, load and finish over the resources of a worker."""

    def __init__(self, resources: Resources, settings: RunSettings) -> None:
        store, blobs = SqlImportStore(resources.database), resources.blobs
        # No document has an idempotency key, so that no other run is asked for.
        self._lifecycle = ImportLifecycle(
            *(store, blobs, MemoryRuns(), resources.rejected, settings.small_document_bytes),
            tables=SmallTables(store, blobs, resources.documents, resources.scratch),
        )
        self._rows = RowImports(
            store, blobs, resources.documents, resources.reports, resources.scratch
        )

    async def prepare(self, message: ImportMessage) -> Preparation:
        """The plan of an import, with its outcome where that is all."""
        order = ImportInput(message=message)
        preparation = await _run(self._lifecycle.prepare, order, is_local=True)
        if preparation.unfinished:
            preparation = await _run(self._lifecycle.prepare, order)
        assert preparation.plan is not None, preparation.skip
        return preparation

    async def do(self, message: ImportMessage) -> None:
        """All of an import, in the steps that it takes."""
        preparation = await self.prepare(message)
        if preparation.plan is not None and preparation.outcome is None:
            outcome = await self.load(message, preparation.plan)
            await self.finish(message, preparation.plan, outcome)

    async def load(self, message: ImportMessage, plan: ImportPlan) -> HandlerOutcome:
        """The rows of an import."""
        return await _run(self._rows.load_rows, HandlerInput(message=message, plan=plan))

    async def finish(
        self, message: ImportMessage, plan: ImportPlan, outcome: HandlerOutcome
    ) -> None:
        """The record of an import."""
        closing = Closing(message=message, plan=plan, state=ImportState.COMPLETED, outcome=outcome)
        await _run(self._lifecycle.finish, closing)


async def _run(step: Callable[[Any], Awaitable[R]], argument: Any, *, is_local: bool = False) -> R:
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, is_local=is_local)
    return await environment.run(step, argument)


@asynccontextmanager
async def open_steps(environment: dict[str, str]) -> AsyncGenerator[Steps]:
    """The steps, wired as a worker wires them."""
    async with open_resources(environment) as resources:
        tune_collector()
        yield Steps(resources, RunSettings.read(environment))
