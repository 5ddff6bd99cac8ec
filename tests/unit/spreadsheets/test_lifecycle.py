"""First and last steps of an import, and notices."""

import errno
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.spreadsheets.lifecycle import SpreadsheetNotifications
from adapters.ports.errors import Unavailable
from tests.support.imports.activities import environment
from tests.support.memory.notifications import MemoryNotifications
from tests.support.spreadsheets.activities import (
    MIXED,
    NOW,
    SpreadsheetSetup,
    StagedSpreadsheet,
    table,
)
from workflows.shared.errors import TRANSIENT, UNAVAILABLE
from workflows.shared.notifications import NotificationPolicies
from workflows.spreadsheets.mappings import ColumnMapping, MappingStatus, SpreadsheetState
from workflows.spreadsheets.runs import Notice, RowCounts, SaveColumns


async def states(setup: SpreadsheetSetup) -> list[tuple[Any, ...]]:
    return await setup.select("spreadsheet_imports", "state sequence")


async def test_an_import_begins_once(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(*MIXED))
    env = environment(workflow_id=f"spreadsheet/{order.uuid}")
    await env.run(setup.lifecycle.begin, order)
    rows = await setup.select("spreadsheet_imports", "uuid state filename created_at")
    assert rows == [(order.uuid, "UPLOADED", "registrations.csv", env.info.scheduled_time)]


async def test_a_late_record_changes_nothing(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(table(*MIXED))
    for state, sequence in (
        (SpreadsheetState.CELL_MAPPING, 2),
        (SpreadsheetState.COLUMN_MAPPING, 1),
        (SpreadsheetState.PROCESSING, 2),
    ):
        await environment().run(setup.lifecycle.record, prepared.record(state, sequence))
    assert await states(setup) == [("PROCESSING", 2)]


async def test_a_row_that_does_not_show_a_parked_import_is_written_later(
    setup: SpreadsheetSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "input/output error")

    prepared = await setup.prepare(table(*MIXED))
    monkeypatch.setattr(setup.store, "record", fail)
    record = prepared.record(SpreadsheetState.PROCESSING, 2)
    for reason, type_ in ((None, TRANSIENT), ("why it is parked", UNAVAILABLE)):
        given = record.model_copy(update={"reason": reason})
        with pytest.raises(ApplicationError) as caught:
            await environment(attempt=3).run(setup.lifecycle.record, given)
        assert (caught.value.type, caught.value.non_retryable) == (type_, True)


async def test_the_end_is_written_once_and_answers_the_counts(setup: SpreadsheetSetup) -> None:
    prepared = await setup.finished()
    assert await prepared.finish(SpreadsheetState.FAILED) == RowCounts(created=3, error=2)
    assert await states(setup) == [("COMPLETED", 1)]


async def test_columns_are_saved_once(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(table(*MIXED))

    def save(version: int, status: MappingStatus) -> SaveColumns:
        columns: tuple[ColumnMapping, ...] = tuple(
            column.model_copy(update={"status": status}) for column in prepared.columns
        )
        return SaveColumns(
            uuid=prepared.order.uuid,
            organisation_id=1,
            import_type="EVENT_PARTICIPANT",
            version=version,
            columns=columns,
        )

    for version, status in ((3, MappingStatus.MANUAL_MATCHED), (2, MappingStatus.IGNORED)):
        await environment().run(setup.lifecycle.save_columns, save(version, status))
    rows = await setup.select("spreadsheet_columns", "status")
    assert {row[0] for row in rows} == {"MANUAL_MATCHED"}


def notice(prepared: StagedSpreadsheet) -> Notice:
    return Notice(
        kind="reminder",
        uuid=prepared.order.uuid,
        organisation_id=1,
        import_type="EVENT_PARTICIPANT",
        filename="registrations.csv",
        state=SpreadsheetState.COLUMN_MAPPING,
        assignee="anna",
        waiting_since=NOW,
        open="required fields have no column yet: LAST_NAME",
    )


async def test_a_notice_of_an_earlier_release_has_one_id_however_often_it_is_sent(
    setup: SpreadsheetSetup,
) -> None:
    reported = notice(await setup.prepare(table(*MIXED)))
    memory = MemoryNotifications()
    send = SpreadsheetNotifications(
        {"memory": memory}, NotificationPolicies(("ops@example.org",))
    ).notify
    for step in (
        {"activity_id": "7", "attempt": 1},
        {"activity_id": "7", "attempt": 2},
        {"activity_id": "8"},
        {"activity_id": "7", "workflow_run_id": "another run"},
    ):
        await environment(workflow_id="spreadsheet/x", **step).run(send, reported)
    assert len(memory.sent) == 3
    (sent, *_) = memory.sent.values()
    assert (sent.kind, sent.title, sent.reason) == ("reminder", reported.filename, reported.open)
    assert (sent.about["uuid"], sent.assignee, sent.recipients) == (
        reported.uuid,
        "anna",
        ("ops@example.org",),
    )
    memory.failure = Unavailable("the mail server is away")
    with pytest.raises(ApplicationError) as caught:
        await environment().run(send, reported)
    assert caught.value.type == TRANSIENT
