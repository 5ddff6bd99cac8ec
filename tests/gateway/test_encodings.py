"""Text as it was written, whatever bytes it comes in: from the upload to rows and reports."""

import io
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
import xlsxwriter
from sqlalchemy import select

from adapters.database.models.spreadsheets import event_participants, persons
from adapters.files.tables.source import open_table
from tests.support.gateway import HEADER, Stack, import_in, sheet, token

pytestmark = pytest.mark.asyncio(loop_scope="session")

WESTERN = ("Jörg", "Müßig", "Junior (U18)")
POLISH = ("Łucja", "Święch", "Junior (U18)")
FRENCH = ("Zoë", "Œuvré 5€", "Junior (U18)")
MIXED = ("Łucja", "Œuvré 東京 😀", "Junior (U18)")


@pytest.mark.parametrize(
    ("encoding", "person", "named"),
    [
        ("utf-8", MIXED, False),
        ("utf-8-sig", MIXED, False),
        ("utf-16", MIXED, False),
        ("cp1252", WESTERN, True),
        ("iso8859-15", FRENCH, True),
        ("cp1250", POLISH, True),
    ],
)
async def test_names_arrive_as_they_are_written(
    stack: Stack, encoding: str, person: tuple[str, str, str], named: bool
) -> None:
    first, last, category = person
    mail = f"somebody@{encoding}.example.org"
    text = sheet(HEADER, (first, last, mail, category)).decode()
    async with stack.browser(token("eva")) as eva:
        fields = {"encoding": encoding} if named else {}
        await import_in(eva, "COMPLETED", text.encode(encoding), autoStart="true", **fields)
    assert await people(stack, mail) == [(first, last)]


async def test_what_looks_like_a_formula_is_text_in_rows_and_reports(
    stack: Stack, tmp_path: Path
) -> None:
    formulas = ("=A1+1", '=HYPERLINK("http://evil.example.org";"x")', "@SUM(A1)", "+A", "-B")
    header = ("First name", "Last name", "Email", "Team", "Notes", "=cmd|'/C calc'!A0")
    rows = [
        (formula, "Text", mail, formula, formula, formula)
        for n, formula in enumerate(formulas)
        for mail in (f"formula{n}@example.org", formula)
    ]
    async with stack.browser(token("fred")) as fred:
        uuid = await import_in(fred, "COMPLETED", sheet(header, *rows), autoStart="true")
        report = (await fred.get(f"/api/v1/runs/spreadsheet/{uuid}/report")).content
        results = await errors(fred, uuid)
    for n, formula in enumerate(formulas):
        mail = f"formula{n}@example.org"
        assert await people(stack, mail) == [(formula, "Text")]
        assert await participations(stack, mail) == [(formula, formula)]
    assert len(results) == len(formulas)
    refuse_formulas(report)
    table = cells(report, tmp_path)
    assert table[0][1:] == list(header)
    # The mail address is what is wrong with them; every cell is there as it was sent.
    assert [row[1:] for row in table[1:]] == [[f, "Text", f, f, f, f] for f in formulas]


async def test_formulas_of_a_workbook_are_read_as_what_they_showed(
    stack: Stack, tmp_path: Path
) -> None:
    target = io.BytesIO()
    with xlsxwriter.Workbook(target) as book:
        page = book.add_worksheet()
        page.write_row(0, 0, ("First name", "Last name", "Email", "Notes"))
        for line, mail in enumerate(("shown@example.org", "=nobody"), start=1):
            page.write_formula(line, 0, '="An"&"na"', None, "Anna")
            page.write_string(line, 1, "=Meier")
            page.write_string(line, 2, mail)
            page.write_formula(line, 3, "=1+1", None, 2)
    async with stack.browser(token("fred")) as fred:
        uuid = await import_in(
            fred, "COMPLETED", target.getvalue(), filename="book.xlsx", autoStart="true"
        )
        report = (await fred.get(f"/api/v1/runs/spreadsheet/{uuid}/report")).content
    assert await people(stack, "shown@example.org") == [("Anna", "=Meier")]
    assert await participations(stack, "shown@example.org") == [(None, "2")]
    refuse_formulas(report)
    assert cells(report, tmp_path)[1][1:] == ["Anna", "=Meier", "=nobody", 2]


async def people(stack: Stack, mail: str) -> list[tuple[Any, ...]]:
    """First and last names of people with a mail address."""
    query = select(persons.c.first_name, persons.c.last_name).where(persons.c.email == mail)
    async with stack.resources.database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def participations(stack: Stack, mail: str) -> list[tuple[Any, ...]]:
    """Teams and notes of people with a mail address."""
    query = (
        select(event_participants.c.team, event_participants.c.notes)
        .join(persons, persons.c.id == event_participants.c.person_id)
        .where(persons.c.email == mail)
    )
    async with stack.resources.database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def errors(browser: httpx.AsyncClient, uuid: str) -> list[Any]:
    answer = await browser.get(f"/api/imports/{uuid}/results", params={"outcome": "ERROR"})
    return answer.json()


def refuse_formulas(workbook: bytes) -> None:
    """No cell of a workbook computes or leads anywhere."""
    with zipfile.ZipFile(io.BytesIO(workbook)) as archive:
        sheets = [name for name in archive.namelist() if name.startswith("xl/worksheets/sheet")]
        assert sheets
        for name in sheets:
            content = archive.read(name)
            assert b"<f>" not in content and b"<f " not in content
            assert b"<hyperlink" not in content


def cells(workbook: bytes, folder: Path) -> list[list[Any]]:
    """Rows of a workbook."""
    path = folder / "report.xlsx"
    path.write_bytes(workbook)
    with open_table(path) as source:
        return [row for _, row in source.rows()]
