"""What a workflow that parks offers to its callers, and what the sandbox shares of it."""

import pkgutil
from datetime import timedelta
from importlib import import_module
from typing import Any

import pytest
from temporalio import workflow

import workflows
from workers.shared.plugin import passthrough
from workflows.batches.batch_lifecycle import BatchLifecycle
from workflows.batches.runs import BatchAnswer
from workflows.imports.document_import import DocumentImport
from workflows.imports.runs import ImportStatus, Retry
from workflows.shared.contracts import Answer
from workflows.shared.parking import Parkable, Parking
from workflows.shared.run_notifications import Notifications
from workflows.spreadsheets.mappings import MappingsAnswer
from workflows.spreadsheets.runs import Answer as SpreadsheetAnswer
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport
from workflows.spreadsheets.undo_and_retention import SpreadsheetUndo

ANSWERS = {"retry", "skip", "fail"}
OFFERED: list[tuple[type, dict[str, type], Any]] = [
    (DocumentImport, {"retry": Retry, "skip": Answer, "fail": Answer}, ImportStatus),
    (BatchLifecycle, dict.fromkeys(("retry", "skip", "fail"), BatchAnswer), type(None)),
    (SpreadsheetImport, {"retry": SpreadsheetAnswer}, MappingsAnswer),
    (SpreadsheetUndo, {"retry": SpreadsheetAnswer}, type(None)),
]


@pytest.mark.parametrize(("parkable", "contracts", "returned"), OFFERED)
def test_a_workflow_takes_the_answers_that_it_states_and_no_other(
    parkable: type, contracts: dict[str, type], returned: Any
) -> None:
    definition = workflow._Definition.must_from_class(parkable)
    assert ANSWERS & definition.updates.keys() == contracts.keys()
    assert ANSWERS & definition.signals.keys() == contracts.keys()
    for name, contract in contracts.items():
        update, signal = definition.updates[name], definition.signals[name]
        assert update.arg_types == [contract]
        assert update.ret_type in (returned, Any)
        assert update.validator is not None
        assert signal.arg_types == [contract | None]


def test_an_update_says_what_it_returns() -> None:
    definition = workflow._Definition.must_from_class(DocumentImport)
    assert definition.updates["skip"].ret_type is ImportStatus


def test_the_mixin_itself_has_no_handlers() -> None:
    assert not any(hasattr(Parkable, name) for name in ANSWERS)


def test_the_mixin_holds_its_parking_and_nothing_else() -> None:
    parking = Parking(timedelta(days=1), Notifications(enabled=False))
    assert vars(Parkable(parking)) == {"_parking": parking}


def test_the_sandbox_shares_every_module_that_defines_no_workflow() -> None:
    for found in pkgutil.walk_packages(workflows.__path__, "workflows."):
        import_module(found.name)
    shared = passthrough()
    assert {"workflows.imports.messages", "workflows.shared.parking"} <= set(shared)
    assert not {"workflows.imports.document_import", "workflows.imports"} & set(shared)
