"""What is no longer kept."""

from datetime import timedelta
from typing import Any

import pytest

from activities.spreadsheets.lifecycle import UPLOAD_AGE, SpreadsheetRetentionSteps
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.ports.errors import BlobNotFound
from tests.support.imports.activities import Killed, environment
from tests.support.spreadsheets.activities import MIXED, NOW, FailingStore, SpreadsheetSetup, table
from workflows.spreadsheets.mappings import SpreadsheetState
from workflows.spreadsheets.reviews import Exclude, ReviewOperation
from workflows.spreadsheets.runs import ExpiredInput, PurgeInput, PurgeResult, RetentionInput


def due(days: float, **order: Any) -> ExpiredInput:
    return ExpiredInput(order=RetentionInput(**order), now=NOW + timedelta(days=days))


async def test_what_is_due_is_purged_with_its_files(setup: SpreadsheetSetup) -> None:
    prepared = await setup.finished()
    waiting = await setup.prepare(table(*MIXED))
    retaining = SpreadsheetRetentionSteps(setup.store, setup.blobs)
    assert (await environment().run(retaining.expired, due(6))).uuids == ()
    page = await environment().run(retaining.expired, due(8))
    assert page.uuids == (prepared.order.uuid,)
    purge = PurgeInput(uuids=page.uuids, now=NOW + timedelta(days=8))
    assert await environment().run(retaining.purge, purge) == PurgeResult(purged=1)
    assert await environment().run(retaining.purge, purge) == PurgeResult()
    for name in (prepared.order.source.name, prepared.staged.rows.name):
        with pytest.raises(BlobNotFound):
            await setup.blobs.stat(name)
    await setup.blobs.stat(waiting.order.source.name)
    assert await setup.count("spreadsheet_results") == 0
    assert dict(await setup.select("spreadsheet_imports", "uuid filename")) == {
        prepared.order.uuid: "",
        waiting.order.uuid: "registrations.csv",
    }


async def test_a_purge_resumes_where_a_worker_died(setup: SpreadsheetSetup) -> None:
    prepared = [await setup.finished(), await setup.finished()]
    purge = PurgeInput(
        uuids=tuple(each.order.uuid for each in prepared), now=NOW + timedelta(days=8)
    )

    def die(number: int) -> None:
        if number == 2:
            raise Killed

    dying: Any = FailingStore(setup.store, "purge", before=die)
    with pytest.raises(Killed):
        await environment().run(SpreadsheetRetentionSteps(dying, setup.blobs).purge, purge)
    retaining = SpreadsheetRetentionSteps(setup.store, setup.blobs)
    assert await environment().run(retaining.purge, purge) == PurgeResult(purged=1)
    assert {row[0] for row in await setup.select("spreadsheet_imports", "filename")} == {""}


async def test_rows_that_are_being_processed_are_never_purged(setup: SpreadsheetSetup) -> None:
    prepared = await setup.prepare(table(*MIXED))
    under_way = prepared.record(SpreadsheetState.PROCESSING)
    await environment().run(setup.lifecycle.record, under_way)
    retaining = SpreadsheetRetentionSteps(setup.store, setup.blobs)
    assert (await environment().run(retaining.expired, due(1000))).uuids == ()
    purge = PurgeInput(uuids=(prepared.order.uuid,), now=NOW + timedelta(days=1000))
    assert await environment().run(retaining.purge, purge) == PurgeResult()
    await setup.blobs.stat(prepared.order.source.name)


async def test_leftovers_are_removed_in_bounded_numbers(setup: SpreadsheetSetup) -> None:
    for _ in range(3):
        await setup.finished()
    views = SqlSpreadsheetViews(setup.database)
    path = setup.folder / "leftover"
    path.write_bytes(b"x")
    for i in range(3):
        name = f"spreadsheets/left-{i}/file"
        await setup.blobs.upload(path, name)
        await views.note_upload(f"left-{i}", name, "anna", NOW - UPLOAD_AGE * (2 - i))
    leftovers = SpreadsheetRetentionSteps(setup.store, setup.blobs).purge_leftovers
    bounds = {"page": 1, "most": 1}
    assert await environment().run(leftovers, due(29.5, **bounds)) == PurgeResult(uploads=1)
    assert await environment().run(leftovers, due(31, **bounds)) == PurgeResult(
        journals=1, uploads=1
    )
    assert await environment().run(leftovers, due(31)) == PurgeResult(journals=2, uploads=1)
    assert await environment().run(leftovers, due(31)) == PurgeResult()
    assert await setup.count("spreadsheet_journal") == 0
    with pytest.raises(BlobNotFound):
        await setup.blobs.stat("spreadsheets/left-0/file")


async def test_changes_that_never_reached_a_review_are_removed(setup: SpreadsheetSetup) -> None:
    sheet = await setup.finished()
    change = ReviewOperation(id=0, version=0, operation=Exclude(rows=(4,)), by="anna", at=NOW)
    for _ in range(3):
        await setup.store.reviews.propose(sheet.order.uuid, change)
    leftovers = SpreadsheetRetentionSteps(setup.store, setup.blobs).purge_leftovers
    assert await environment().run(leftovers, due(0.9)) == PurgeResult()
    bounds = {"page": 1, "most": 2}
    assert await environment().run(leftovers, due(1.1, **bounds)) == PurgeResult(proposals=2)
    assert await environment().run(leftovers, due(1.1)) == PurgeResult(proposals=1)


async def test_a_fresh_upload_stays(setup: SpreadsheetSetup) -> None:
    views = SqlSpreadsheetViews(setup.database)
    await views.note_upload("fresh", "spreadsheets/fresh/file", "anna", NOW)
    leftovers = SpreadsheetRetentionSteps(setup.store, setup.blobs).purge_leftovers
    assert await environment().run(leftovers, due(0.9)) == PurgeResult()
