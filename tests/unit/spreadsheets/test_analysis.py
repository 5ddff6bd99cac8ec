"""The top of a file: header, columns, preview."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from temporalio.exceptions import ApplicationError

from activities.spreadsheets.analysis import PREVIEW_ROWS
from tests.support.files.open_documents import ods
from tests.support.files.workbooks import sheet_xml, write_workbook
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import ORGANISATION, SpreadsheetSetup, table
from workflows.shared.errors import INVALID_DOCUMENT, PERMANENT, UNREADABLE_DOCUMENT
from workflows.spreadsheets.mappings import ColumnMapping, FieldMetadata, Layout, MappingStatus
from workflows.spreadsheets.runs import SaveColumns, SpreadsheetInput

HEADER = ["Vorname", "Nachname", "E-Mail-Adresse", "Straße", "Größe"]
ROWS = [["Jörg", "Müller", "joerg@example.org", "Übelstraße 1", "groß"]]


def workbook(folder: Path, **sheets: list[list[Any]]) -> bytes:
    path = folder / "made.xlsx"
    with xlsxwriter.Workbook(str(path), {"default_date_format": "yyyy-mm-dd"}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for line, row in enumerate(rows):
                sheet.write_row(line, 0, row)
    return path.read_bytes()


def targets(columns: tuple[ColumnMapping, ...]) -> dict[str, str | None]:
    return {column.header: column.target for column in columns}


async def preview(setup: SpreadsheetSetup, order: SpreadsheetInput) -> dict[str, Any]:
    rows = await setup.select("spreadsheet_imports", "uuid preview")
    return json.loads(dict(rows)[order.uuid])


async def samples(setup: SpreadsheetSetup) -> list[str]:
    return [row[0] for row in await setup.select("spreadsheet_columns", "samples")]


@pytest.mark.parametrize(
    ("encoding", "named", "found"),
    [
        ("utf-8", None, "utf-8"),
        ("utf-8-sig", None, "utf-8-sig"),
        ("utf-16", None, "utf-16"),
        ("utf-16-le", None, "utf-16-le"),
        ("cp1252", None, "windows-1252"),
        ("cp850", "cp850", "cp850"),
        ("mac_roman", "macintosh", "mac-roman"),
    ],
)
async def test_files_in_many_encodings(
    setup: SpreadsheetSetup, encoding: str, named: str | None, found: str
) -> None:
    order = await setup.upload(table(HEADER, *ROWS, encoding=encoding, delimiter=";"))
    analysis = await setup.analyse(order, Layout(encoding=named))
    assert analysis.layout == Layout(encoding=found, delimiter=";", header_line=1)
    assert targets(analysis.columns) == {
        "Vorname": "FIRST_NAME",
        "Nachname": "LAST_NAME",
        "E-Mail-Adresse": "EMAIL",
        "Straße": "STREET",
        "Größe": None,
    }
    seen = await preview(setup, order)
    assert seen["rows"] == [[1, HEADER], [2, ROWS[0]]]


async def test_the_layout_as_found_reads_the_same(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(["x"], HEADER, *ROWS, encoding="cp1252", delimiter="\t"))
    first = await setup.analyse(order)
    seen = await preview(setup, order)
    again = await setup.analyse(order, first.layout)
    assert first.layout.header_line == 2
    assert again.columns == first.columns
    assert await preview(setup, order) == seen


async def test_a_delimiter_may_be_named(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(b"First name|Last name,Email\nAnna,A|B,a@example.org\n")
    analysis = await setup.analyse(order, Layout(delimiter="|"))
    assert [column.header for column in analysis.columns] == ["First name", "Last name,Email"]


async def test_the_header_may_stand_on_line_4(setup: SpreadsheetSetup) -> None:
    title = [["City Marathon 2025"], [], ["printed", "", "", "2025-03-04"]]
    order = await setup.upload(table(*title, HEADER, *ROWS))
    analysis = await setup.analyse(order)
    assert analysis.layout.header_line == 4
    assert (await preview(setup, order))["rows"][0] == [4, HEADER]


async def test_a_person_may_name_the_line_of_the_header(setup: SpreadsheetSetup) -> None:
    filler = [["a", "b"]] * 50
    order = await setup.upload(table(HEADER, *filler, ["First name", "Last name"], ["Anna", "A"]))
    analysis = await setup.analyse(order, Layout(header_line=52))
    assert targets(analysis.columns) == {"First name": "FIRST_NAME", "Last name": "LAST_NAME"}
    with pytest.raises(ApplicationError, match="line 90 holds nothing") as caught:
        await setup.analyse(order, Layout(header_line=90))
    assert (caught.value.type, caught.value.non_retryable) == (INVALID_DOCUMENT, True)


async def test_ghost_columns_and_rows_are_ignored(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(
        table(
            ["First name", "", "Last name", " ", "", ""],
            ["Anna", "", "A", "", "\t", ""],
            ["", " ", "", "", "", ""],
            ["Bob", "", "B", "", "", "seen"],
        )
    )
    analysis = await setup.analyse(order)
    assert [(column.id, column.index, column.header) for column in analysis.columns] == [
        (1, 0, "First name"),
        (3, 2, "Last name"),
        (6, 5, "Column F"),
    ]
    assert analysis.columns[2].status is MappingStatus.UNMATCHED
    assert [row[0] for row in (await preview(setup, order))["rows"]] == [1, 2, 4]
    assert await samples(setup) == ['["Anna", "Bob"]', '["A", "B"]', '["seen"]']


async def test_the_first_sheet_with_anything_or_the_one_asked_for(setup: SpreadsheetSetup) -> None:
    content = workbook(
        setup.folder,
        Empty=[],
        Members=[["First name", "Last name"], ["Anna", "A"]],
        Others=[["Surname"], ["B"]],
    )
    order = await setup.upload(content, filename="members.xlsx")
    analysis = await setup.analyse(order)
    assert analysis.layout == Layout(sheet="Members", header_line=1)
    seen = await preview(setup, order)
    assert (seen["format"], seen["sheets"]) == ("xlsx", ["Empty", "Members", "Others"])
    other = await setup.analyse(order, Layout(sheet="others"), version=2)
    assert other.layout.sheet == "Others"
    assert targets(other.columns) == {"Surname": "LAST_NAME"}
    with pytest.raises(ApplicationError, match="no sheet 'Third'; it has 'Empty'") as caught:
        await setup.analyse(order, Layout(sheet="Third"), version=3)
    assert caught.value.type == UNREADABLE_DOCUMENT


async def test_a_sheet_whose_name_is_too_long_to_ask_for_is_read_as_the_first(
    setup: SpreadsheetSetup,
) -> None:
    order = await setup.upload(ods("N" * 150, [["First name"], ["Anna"]]), filename="t.ods")
    analysis = await setup.analyse(order)
    assert analysis.layout == Layout(header_line=1)
    assert (await setup.analyse(order, analysis.layout)).columns == analysis.columns


async def test_dates_and_formulas_are_shown_as_text(setup: SpreadsheetSetup) -> None:
    rows = [["First name", "Birthdate", "Notes"], ["Anna", date(1990, 5, 31), "'=1+1"]]
    order = await setup.upload(workbook(setup.folder, S=rows), filename="t.xlsx")
    await setup.analyse(order)
    assert (await preview(setup, order))["rows"][1] == [2, ["Anna", "1990-05-31", "'=1+1"]]


async def test_the_preview_is_short_and_samples_are_few(setup: SpreadsheetSetup) -> None:
    rows = [[f"Anna{i % 7}", "x" * 1000] for i in range(100)]
    order = await setup.upload(table(["First name", "Notes"], *rows))
    await setup.analyse(order)
    shown = (await preview(setup, order))["rows"]
    assert [line for line, _ in shown] == list(range(1, PREVIEW_ROWS + 1))
    assert max(len(cell) for _, cells in shown for cell in cells) == 200
    assert (await samples(setup))[0] == '["Anna0", "Anna1", "Anna2", "Anna3", "Anna4"]'


async def test_more_columns_than_can_be_mapped_are_named(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table([f"H{i}" for i in range(263)], [str(i) for i in range(264)]))
    with pytest.raises(ApplicationError) as caught:
        await setup.analyse(order)
    assert caught.value.type == INVALID_DOCUMENT
    assert "264 columns hold something, and at most 256 can be mapped" in str(caught.value)
    assert "'H256' (Column IW), 'H257' (Column IX)" in str(caught.value)
    assert str(caught.value).endswith("and 3 more")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty"),
        (b"%PDF-1.7 ...", "a PDF document"),
        (b"PK\x03\x04" + b"\0" * 100, "cut off|damaged"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600,
            "an old Office file without a workbook",
        ),
        (b"<!DOCTYPE html><table><tr><td>1</td></tr></table>", "HTML"),
        (b'First name\n"Anna\nBob\n', "a quote is opened and never closed"),
        (b"a\0b\n", "NUL"),
    ],
)
async def test_what_is_no_table_fails_with_the_reason(
    setup: SpreadsheetSetup, content: bytes, reason: str
) -> None:
    order = await setup.upload(content)
    with pytest.raises(ApplicationError, match=reason) as caught:
        await setup.analyse(order)
    assert (caught.value.type, caught.value.non_retryable) == (UNREADABLE_DOCUMENT, True)


async def test_a_zip_bomb_is_not_unpacked(setup: SpreadsheetSetup) -> None:
    bomb = write_workbook(
        setup.folder / "bomb",
        {"S": sheet_xml('<row r="1"><c r="A1"><v>1</v></c></row>')},
        extra={"xl/media/image1.png": b"\0" * (200 << 20)},
    )
    order = await setup.upload(bomb.read_bytes(), filename="registrations.xlsx")
    with pytest.raises(ApplicationError, match="bomb") as caught:
        await setup.analyse(order)
    assert caught.value.type == UNREADABLE_DOCUMENT


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"context_id": None}, "type EVENT_PARTICIPANT needs its Event"),
        ({"context_id": 8}, "there is no Event 8 in this organisation"),
        ({"context_id": 99}, "there is no Event 99 in this organisation"),
        ({"import_type": "HORSES"}, "there is no import type HORSES; there are EVENT_PARTICIPANT"),
    ],
)
async def test_a_type_or_context_that_is_not_there_is_refused(
    setup: SpreadsheetSetup, fields: dict[str, Any], reason: str
) -> None:
    order = await setup.upload(table(HEADER, *ROWS), **fields)
    with pytest.raises(ApplicationError, match=reason) as caught:
        await setup.analyse(order)
    assert (caught.value.type, caught.value.non_retryable) == (PERMANENT, True)


async def test_a_file_that_was_replaced_is_refused(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(HEADER, *ROWS))
    path = setup.folder / "other"
    path.write_bytes(table(["a"], ["b"]))
    await setup.blobs.upload(path, order.source.name)
    with pytest.raises(ApplicationError, match="was replaced"):
        await setup.analyse(order)


async def test_earlier_decisions_count(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(["Rufzeichen", "Nachname"], ["Anna", "A"]))
    (first, last) = (await setup.analyse(order)).columns
    assert first.target is None
    decided = first.model_copy(
        update={"target": "FIRST_NAME", "status": MappingStatus.MANUAL_MATCHED, "confidence": 1.0}
    )
    save = SaveColumns(
        uuid=order.uuid,
        organisation_id=ORGANISATION,
        import_type=order.import_type,
        version=2,
        columns=(decided, last),
        remember=True,
    )
    await environment().run(setup.lifecycle.save_columns, save)
    other = await setup.upload(table(["RUFZEICHEN ", "Nachname"], ["Bob", "B"]))
    found = (await setup.analyse(other)).columns[0]
    assert (found.target, found.status, found.confidence) == (
        "FIRST_NAME",
        MappingStatus.AUTO_MATCHED,
        0.9,
    )


async def test_fields_of_custom_lists_belong_to_the_run(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table([*HEADER, "T-Shirt"], [*ROWS[0], "M"]))
    analysis = await setup.analyse(order)
    assert analysis.columns[-1].target == "CUSTOM_LIST_T_SHIRT"
    assert analysis.fields[-1] == FieldMetadata(
        name="CUSTOM_LIST_T_SHIRT",
        resolver=analysis.fields[-1].resolver,
        creates=True,
        title="T-shirt",
    )


async def test_a_late_attempt_changes_nothing(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(HEADER, *ROWS, delimiter=";"))
    await setup.analyse(order, version=2)
    saved = await preview(setup, order)
    await setup.analyse(order, Layout(delimiter="|"), version=1)
    assert await preview(setup, order) == saved
    assert len(await samples(setup)) == len(HEADER)


async def test_without_a_header_row_columns_have_letters(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(("Anna", "A"), ("Bob", "B")))
    found = await setup.analyse(order, Layout(no_header=True))
    assert [column.header for column in found.columns] == ["Column A", "Column B"]
    assert (found.layout.header_line, found.layout.no_header) == (None, True)
    assert (await setup.stage(order, found.layout)).total == 2


async def test_sheets_that_are_not_read_are_named(setup: SpreadsheetSetup) -> None:
    path = setup.folder / "two.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        for name, rows in (("First", 2), ("Second", 3), ("Empty", 0)):
            sheet = book.add_worksheet(name)
            for line in range(rows):
                sheet.write_row(line, 0, ["First name", "Last name"] if not line else ["A", "B"])
    order = await setup.upload(path.read_bytes(), filename="two.xlsx")
    assert (await setup.analyse(order)).other_sheets == ("Second",)
    assert (await setup.analyse(order, Layout(sheet="Second"))).other_sheets == ("First",)


async def test_rows_of_a_table_above_the_header_are_named(setup: SpreadsheetSetup) -> None:
    people = table(
        ("Runners of the club",),
        ("First name", "Last name", "E-mail"),
        ("Ada", "Lovelace", "ada@example.org"),
        ("Alan", "Turing", "alan@example.org"),
        (),
        ("First name", "Last name", "E-mail", "Date of birth", "Shoe size"),
        ("Grace", "Hopper", "grace@example.org", "1906-12-09", "38"),
    )
    order = await setup.upload(people)
    found = await setup.analyse(order)
    assert (found.layout.header_line, found.lines_above) == (6, (3, 4))
    again = await setup.analyse(order, Layout(header_line=2))
    assert again.lines_above == ()


async def test_titles_and_legends_above_the_header_are_no_rows(setup: SpreadsheetSetup) -> None:
    people = table(
        ("Runners", "Season 2026"),
        ("Contact", "Ada"),
        ("Club", "Harriers"),
        ("First name", "Last name", "E-mail"),
        ("Grace", "Hopper", "grace@example.org"),
    )
    order = await setup.upload(people)
    assert (await setup.analyse(order)).lines_above == ()


async def test_a_file_without_rows_says_so_at_once(setup: SpreadsheetSetup) -> None:
    order = await setup.upload(table(("First name", "Last name")))
    with pytest.raises(ApplicationError, match="holds headers and no rows below them") as caught:
        await setup.analyse(order)
    assert caught.value.type == INVALID_DOCUMENT
