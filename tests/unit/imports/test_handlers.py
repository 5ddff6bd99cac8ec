"""What the handlers of all document types have in common."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from temporalio import activity

from activities.imports.lifecycle import DeleteImports, UploadImports
from activities.imports.rows import RowImports
from activities.imports.schedules import ScheduleImports
from activities.imports.tables import TableTypes
from activities.shared import failures
from tests.support.imports.activities import ActivityPorts, environment, message_of, work_of
from tests.unit.imports.test_messages import FIELDS
from workers.shared.register import activities_of
from workflows.imports.messages import DocumentType
from workflows.imports.runs import Handler, HandlerInput, HandlerOutcome


class Locked:
    """A database of which another session has locked every table."""

    types = TableTypes(cast(Any, None))

    def __getattr__(self, name: str) -> Any:
        return self._wait

    async def _wait(self, *_: Any, **__: Any) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError


def definition_of(run: Any) -> Any:
    """Name and types under which a worker registers an activity."""
    return activity._Definition.must_from_callable(run)


def handlers(ports: ActivityPorts) -> Mapping[str, Any]:
    """Every activity that does the work of a document type, by its name."""
    store: Any = Locked()
    common = (store, ports.blobs, ports.documents, ports.reports, ports.scratch)
    classes = (
        RowImports(*common),
        ScheduleImports(*common),
        UploadImports(store, ports.blobs, ports.scratch),
        DeleteImports(store),
    )
    return {definition_of(run).name: run for run in activities_of(*classes)}


@pytest.mark.parametrize("document_type", list(DocumentType))
async def test_work_that_takes_long_is_handed_over_whatever_the_document_type(
    document_type: DocumentType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "CUT_SECONDS", 0.05)
    ports = ActivityPorts(tmp_path)
    message = message_of(document_type.value, **FIELDS[document_type])
    source = None
    for name in ("blob_name", "temp_blob_name"):
        if blob := getattr(message, name, None):
            source = await ports.put(blob, Path("samples/unit100.xer").read_bytes())
    work = work_of(message, source)
    run = handlers(ports)[work.plan.facts.handler.value]
    async with asyncio.timeout(30):
        outcome = await environment(is_local=True).run(run, work)
    assert outcome == HandlerOutcome(unfinished=True)


def test_every_handler_takes_and_returns_the_same_contracts(tmp_path: Path) -> None:
    found = handlers(ActivityPorts(tmp_path))
    assert found.keys() == set(Handler)
    for run in found.values():
        definition = definition_of(run)
        assert (definition.arg_types, definition.ret_type) == ([HandlerInput], HandlerOutcome)
