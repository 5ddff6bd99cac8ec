"""Uploads of crew members: what they change beside their rows, and how that is taken back."""

from datetime import date

from adapters.types.files import own_types
from tests.support.spreadsheets.activities import SpreadsheetSetup
from tests.types.conftest import Installation
from tests.types.test_uploads import undone
from workflows.spreadsheets.runs import RowCounts


async def test_an_uploaded_assignment_ends_the_earlier_one_until_it_is_taken_back(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    crew = own_types()["crew_member"]
    await installation.imported("crew_member", b"employee_no,valid_from,crew\nE-1,2024-01-01,C-1\n")
    later = "employee_no,valid_from,crew\nE-1,2025-01-01,C-2\n"
    before = [("E-1", date(2024, 1, 1), None)]
    columns = ("employee_no", "valid_from", "valid_to")
    for dry_run in (True, False):
        sheet = await sheets.prepare(
            later.encode(),
            import_type=crew.name,
            type_digest=crew.digest,
            scope={"project_id": "P1"},
            context_id=None,
            filename="rows.csv",
            dry_run=dry_run,
        )
        assert (await sheet.collect()).open == 0
        assert await installation.rows(crew, *columns) == before
        assert (await sheet.process()).counts == RowCounts(created=1)
    assert await installation.rows(crew, *columns) == [
        ("E-1", date(2024, 1, 1), date(2024, 12, 31)),
        ("E-1", date(2025, 1, 1), None),
    ]
    await sheet.finish()
    taken_back = (await undone(sheet)).counts
    assert (taken_back.deleted, taken_back.restored) == (1, 1)
    assert await installation.rows(crew, *columns) == before


async def test_an_assignment_of_an_earlier_chunk_is_taken_back_as_well(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    crew = own_types()["crew_member"]
    lines = ["E-1,2024-01-01", "E-2,2024-01-01", "E-3,2024-01-01", "E-1,2025-01-01"]
    sheet = await sheets.prepare(
        "\n".join(["employee_no,valid_from", *lines]).encode(),
        import_type=crew.name,
        type_digest=crew.digest,
        scope={"project_id": "P1"},
        context_id=None,
        filename="rows.csv",
    )
    await sheet.collect()
    assert (await sheet.process()).counts == RowCounts(created=4)
    await sheet.finish()
    counts = (await undone(sheet)).counts
    assert (counts.deleted, counts.restored, counts.left_alone) == (4, 1, 0)
    assert await installation.rows(crew, "employee_no") == []


async def test_a_blank_last_day_of_an_upload_keeps_the_stored_one(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    crew = own_types()["crew_member"]
    stored = b"employee_no,valid_from,valid_to\nE-1,2026-01-01,2026-06-30\nE-1,2026-09-01,\n"
    await installation.imported("crew_member", stored)
    sheet = await sheets.prepare(
        b"employee_no,valid_from,valid_to,crew\nE-1,2026-01-01,,C-9\n",
        import_type=crew.name,
        type_digest=crew.digest,
        scope={"project_id": "P1"},
        context_id=None,
        filename="rows.csv",
    )
    await sheet.collect()
    assert (await sheet.process()).counts == RowCounts(updated=1)
    assert await installation.rows(crew, "crew", "valid_to") == [
        ("C-9", date(2026, 6, 30)),
        (None, None),
    ]
