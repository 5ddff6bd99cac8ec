"""Uploads of declared types become rows of their tables, and can be taken back."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from temporalio.exceptions import ApplicationError

from activities.spreadsheets.chunk_records import KEPT, UP_TO_DATE
from activities.spreadsheets.row_store import KNOWN_ROW, UNKNOWN_ROW
from activities.spreadsheets.validation import KEY_ALONE, SUSPECT
from adapters.types.files import read_type
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import (
    NOW,
    ORGANISATION,
    SpreadsheetSetup,
    StagedSpreadsheet,
)
from tests.types.conftest import Installation
from tests.unit.spreadsheets.test_review import Reviewed
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import INVALID_DECISION
from workflows.spreadsheets.mappings import CellRule, MappingStatus
from workflows.spreadsheets.runs import RowCounts, UndoInput, UndoResult

Trades = dict[str, DeclaredType]


async def uploaded(
    sheets: SpreadsheetSetup,
    declared: DeclaredType,
    content: str | bytes,
    filename: str = "rows.csv",
    **scope: str,
) -> StagedSpreadsheet:
    """An upload whose columns are matched and whose values are collected."""
    return await sheets.prepare(
        content if isinstance(content, bytes) else content.encode(),
        import_type=declared.name,
        type_digest=declared.digest,
        scope=scope,
        context_id=None,
        filename=filename,
    )


def formatted(lines: list[str], formats: list[str]) -> bytes:
    """A workbook whose second column has numbers in these formats of cells."""
    made = BytesIO()
    with xlsxwriter.Workbook(made, {"in_memory": True}) as book:
        sheet = book.add_worksheet()
        sheet.write_row(0, 0, lines[0].split(";"))
        for line, (text, shown) in enumerate(zip(lines[1:], formats, strict=True), 1):
            item, amount = text.split(";")
            sheet.write_string(line, 0, item)
            sheet.write_number(line, 1, float(amount), book.add_format({"num_format": shown}))
    return made.getvalue()


async def undone(sheet: StagedSpreadsheet, at: datetime = NOW, *lines: int) -> UndoResult:
    """Take an upload back that has ended; no lines: all of it."""
    from activities.spreadsheets.rows import SpreadsheetUndoSteps

    steps = SpreadsheetUndoSteps(sheet.setup.store)
    return await environment().run(
        steps.undo, undo_of(sheet, at).model_copy(update={"lines": lines})
    )


def undo_of(sheet: StagedSpreadsheet, at: datetime = NOW) -> UndoInput:
    return UndoInput(
        uuid=sheet.order.uuid,
        organisation_id=ORGANISATION,
        by="anna",
        filename="rows.csv",
        requested_at=at,
        within=10**9,
    )


INVOICES = """Rechnungsnr.;Position;Artikel;Menge;Netto;Brutto;Stand;bezahlt am;Kostenstelle
RE-0001;1;Schrauben;100;12,50 €;14,88 €;bezahlt;04.03.2025;K-1
RE-0001;2;Muttern;50;5,00 €;4,00 €;offen;;K-1
RE-0002;1;Öl;2,5;30,00 €;35,70 €;bezahlt;;K-2
re2;1;Fett;1;1,00 €;1,19 €;offen;;
"""


async def test_an_upload_is_checked_by_the_rules_of_its_type(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades
) -> None:
    await installation.declare("invoice_lines")
    declared = trades["invoice_lines"]
    sheet = await uploaded(
        sheets, declared, INVOICES.replace("Rechnungsnr.", "Rechnungsnummer"), project_id="P1"
    )
    processed = await sheet.process()
    assert processed.counts == RowCounts(created=1, error=3)
    assert await installation.rows(declared, "project_id", "invoice", "line", "net", "other") == [
        ("P1", "RE-0001", 1, Decimal("12.50"), {"Kostenstelle": "K-1"})
    ]
    pages = [page async for page in sheets.store.errors(sheet.order.uuid)]
    assert {line: problems[0].reason for page in pages for line, problems in page} == {
        3: "the net amount is higher than the gross amount",
        4: "is missing, and status is paid",
        5: "does not match the pattern [A-Z]{2}-[0-9]{4,}",
    }


ITEMS = """
name: items
title: Items
key: [item]
fields:
  item: {kind: text, required: true, aliases: [Posten, Poste, Partida]}
  text: {aliases: [Texto]}
  amount: {AMOUNT, aliases: [Betrag, Montant, Importe]}
"""
FILES: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "doors.toml").read_text())
NOTES = {
    "odd": r"with a doubtful key (?:was|were) taken \(([^)]*)\)",
    "lone": r"with nothing but a key (?:was|were) taken \(([^)]*)\)",
    "left": r"(?:was|were) left out \(([^)]*)\)",
}


@pytest.mark.parametrize("name", FILES)
async def test_both_doors_read_and_show_the_same(
    installation: Installation, sheets: SpreadsheetSetup, name: str
) -> None:
    case = FILES[name]
    text = case.get("type") or ITEMS.replace("AMOUNT", case.get("amount", "kind: decimal"))
    declared = read_type(text, "items.yaml")
    await installation.types.apply(declared)
    wanted = {kind: case.get(kind, []) for kind in NOTES} | {"wrong": case.get("wrong", {})}
    for project in ("P1", "P2") if "stored" in case else ():
        stored = case["stored"].encode()
        done = await installation.imported("items", stored, project_id=project, task_id="T0")
        assert not done.counts.rejected

    given: dict[str, Any] = {"project_id": "P1", "max_rejected_share": 1}
    content, filename = case["content"].encode(), "rows.csv"
    if formats := case.get("formats"):
        content, filename = formatted(case["content"].split(), formats), "rows.xlsx"
    given["filename"] = filename
    sent = await installation.imported("items", content, **given)
    found: dict[str, Any] = {"wrong": {}}
    for kind, pattern in NOTES.items():
        lines = re.findall(pattern, sent.note or "")
        found[kind] = sorted(int(each) for each in re.findall(r"\b\d+", " ".join(lines)))
    for each in sent.problems:
        if not each.reason.startswith("left out"):
            found["wrong"][str(each.line)] = each.reason
    assert found == wanted

    sheet = await uploaded(sheets, declared, content, filename, project_id="P2")
    if "stored" in case:
        assert (await Reviewed(sheet).open()).wrong == len(wanted["wrong"])
    await sheet.process()
    [(preview,)] = await sheets.select("spreadsheet_imports", "preview")
    kinds = {SUSPECT: "odd", KEY_ALONE: "lone"}
    found = {kind: [] for kind in NOTES}
    for line, reason, is_skipped, _ in json.loads(preview).get("skipped", ()):
        found["left" if is_skipped else kinds[reason]].append(line)
    pages = [page async for page in sheets.store.errors(sheet.order.uuid)]
    found["wrong"] = {str(line): rest[0].reason for page in pages for line, rest in page}
    assert found == wanted

    rows = await installation.rows(declared, "project_id", *declared.key, "amount")
    by_door: dict[str, list[str]] = {project: [] for project in ("P1", "P2")}
    for project, *key, amount in rows:
        is_number = isinstance(amount, int | Decimal)
        shown = f"{Decimal(amount).normalize():f}" if is_number else str(amount or "")
        by_door[project].append("|".join([*map(str, key), shown]))
    assert by_door == {"P1": case["rows"], "P2": case["rows"]}


async def test_both_doors_meet_by_natural_key_and_an_undo_restores(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades
) -> None:
    await installation.declare("parts")
    declared = trades["parts"]
    await installation.imported("parts", b"Teilenummer;Benennung\nA-1;Rahmen\nA-2;Achse\n")
    text = "Teilenummer;Benennung;Stück\nA-1;Rahmen;4\nA-2;Achse;\nA-3;Rad;2\n"
    sheet = await uploaded(sheets, declared, text)
    assert (await sheet.process()).counts == RowCounts(created=1, updated=1, skipped=1)
    columns = ("part", "title", "amount", "version", "source_line")
    assert await installation.rows(declared, *columns, "source_task") == [
        ("A-1", "Rahmen", 4, 2, 2, "test"),
        ("A-2", "Achse", None, 1, 3, "T1"),
        ("A-3", "Rad", 2, 1, 4, "test"),
    ]
    await sheet.finish()
    result = await undone(sheet)
    assert (result.counts.deleted, result.counts.restored) == (1, 1), result
    assert await installation.rows(declared, "part", "amount", "version") == [
        ("A-1", None, 3),
        ("A-2", None, 1),
    ]


async def test_an_undo_leaves_rows_that_were_changed_since(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades
) -> None:
    await installation.declare("parts")
    sheet = await uploaded(sheets, trades["parts"], "Teilenummer;Benennung\nA-1;Rahmen\nA-2;Rad\n")
    await sheet.process()
    await sheet.finish()
    await installation.run_sql("UPDATE docflow_types.parts SET title = 'Welle' WHERE part = 'A-2'")
    result = await undone(sheet)
    assert result.problems == ("row 3: parts A-2 was changed since",)
    assert await installation.rows(trades["parts"], "part") == [("A-2",)]


async def test_references_are_asked_refused_or_found_in_the_file(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades
) -> None:
    await installation.declare("parts")
    text = "Teilenummer;Benennung;Baugruppe\nA-1;Rahmen;\nA-2;Achse;A-1\nA-3;Rad;A-9\n"
    sheet = await uploaded(sheets, trades["parts"], text)
    assert (await sheet.collect()).open == 0
    assert (await sheet.process()).counts == RowCounts(created=2, error=1)
    assert await installation.rows(trades["parts"], "part", "assembly") == [
        ("A-1", None),
        ("A-2", "A-1"),
    ]


OWN_ROWS = {
    "a rejected row is no row to refer to": ("A,Rad,,0\nB,Achse,A,1\nC,Rahmen,,1\n", "C"),
    "nor is one that refers to it": ("A,,,1\nB,Achse,A,1\nC,Rad,B,1\nD,Bolzen,,1\n", "D"),
    "rows refer to each other in any order": ("A,Rad,B,1\nB,Achse,C,1\nC,Welle,A,1\n", "ABC"),
    "a right row of the key is enough": ("A,,,1\nA,Rad,,1\nB,Achse,A,1\n", "AB"),
    "a stored row stays one": ("S,,,1\nB,Achse,S,1\n", "B"),
}
"""Rows of parts, and which parts are stored afterwards beside S."""


@pytest.mark.parametrize("case", OWN_ROWS)
@pytest.mark.parametrize("door", ["upload", "message"])
async def test_a_row_refers_to_rows_that_go_in(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades, door: str, case: str
) -> None:
    await installation.declare("parts")
    await installation.imported("parts", b"part,title\nS,Stored\n", task_id="T0")
    rows, stored = OWN_ROWS[case]
    if door == "message" and case == "a right row of the key is enough":
        stored = ""  # of two rows with one key, a message takes neither
    text = f"part,title,assembly,amount\n{rows}"
    if door == "upload":
        sheet = await uploaded(sheets, trades["parts"], text)
        assert (await sheet.collect()).open == 0
        await sheet.process()
        pages = [page async for page in sheets.store.errors(sheet.order.uuid)]
        problems = [each for page in pages for _, row in page for each in row]
    else:
        done = await installation.imported("parts", text.encode(), max_rejected_share=1)
        problems = list(done.problems)
    found = await installation.rows(trades["parts"], "part")
    assert [part for (part,) in found if part != "S"] == list(stored)
    refused = [each for each in problems if each.column == "assembly"]
    is_refused = stored in ("C", "D", "")
    assert {each.reason for each in refused} == ({"is not in parts"} if is_refused else set())


CUT = "stands behind the last column of the header: put a value that holds the delimiter into "
WIDTHS = {
    "a row that was cut at a delimiter": ("A-1,Rad,2\nA-2,Rahmen, lang,1\nA-3,Rad,4\n", [3]),
    "two of five rows": ("A,a,1\nB,b,x,1\nC,c,1\nD,d,x,1\nE,e,1\n", [3, 5]),
    "a row far below": ("".join(f"P{n},a,1\n" for n in range(1200)) + "Q,a,1,x\n", [1202]),
    "blanks behind the header": ("A-1,Rad,2,\nA-2,Rad,1, ,\n", []),
    "a column that most rows fill": ("A-1,Rad,2,x\nA-2,Rad,1,y\nA-3,Rad,1\n", None),
}


@pytest.mark.parametrize("case", WIDTHS)
async def test_a_row_of_more_cells_than_the_header_is_refused(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades, case: str
) -> None:
    await installation.declare("parts")
    rows, refused = WIDTHS[case]
    content = f"part,title,amount\n{rows}"
    sheet = await uploaded(sheets, trades["parts"], content)
    asked = [each.header for each in sheet.columns if each.target is None]
    assert asked == ([] if refused is not None else ["Column D"])
    await sheet.process()
    pages = [page async for page in sheets.store.errors(sheet.order.uuid)]
    found = {line: problems for page in pages for line, problems in page}
    assert list(found) == (refused or [])
    if refused:
        done = await installation.imported("parts", content.encode(), max_rejected_share=1)
        said = [each for each in done.problems if each.reason.startswith(CUT)]
        assert [each.line for each in said] == refused
        for each in said:
            assert each.model_copy(update={"mark": None}) in found[each.line or 0]


ORDERS = """
name: orders
title: Orders
scope: []
key: [number]
fields:
  number: {kind: code, required: true}
  supplier: {kind: reference, to: suppliers, unknown: UNKNOWN}
  site: {kind: reference, table: erp_sites, row_key: code, label: name}
"""
SUPPLIERS = """
name: suppliers
title: Suppliers
scope: []
key: [supplier]
fields:
  supplier: {kind: code, required: true}
"""


CHOSEN = """
name: states
title: States
scope: []
key: [state]
fields:
  state: {KEY, required: true}
"""
USING = """
name: tools
title: Tools
scope: []
key: [number]
fields:
  number: {kind: code, required: true}
  state: {kind: reference, to: states, unknown: UNKNOWN}
"""
CHOICES = "kind: choice, choices: {new: [], in repair: [defekt], lost: [weg]}"


@pytest.mark.parametrize("unknown", ["ask", "refuse", "create"])
async def test_both_doors_know_the_other_ways_to_write_a_key(
    installation: Installation, sheets: SpreadsheetSetup, unknown: str
) -> None:
    states = read_type(CHOSEN.replace("KEY", CHOICES), "states.yaml")
    tools = read_type(USING.replace("UNKNOWN", unknown), "tools.yaml")
    await installation.types.apply(states)
    await installation.types.apply(tools)
    await installation.imported("states", b"state\nin repair\n")
    expected = [("1", "in repair"), ("2", "in repair")]
    text = "number,state\n1,Defekt\n2,in repair\n"
    if unknown == "create":
        text, expected = text + "3,weg\n", [*expected, ("3", "lost")]
    done = await installation.imported("tools", text.encode(), task_id="T2")
    assert done.counts.created == len(expected)
    assert await installation.rows(tools, "number", "state") == expected
    await installation.run_sql("DELETE FROM docflow_types.tools")
    await installation.run_sql("DELETE FROM docflow_types.states WHERE state = 'lost'")
    sheet = await uploaded(sheets, tools, text)
    assert not (await sheet.collect()).open
    assert (await sheet.process()).counts == RowCounts(created=len(expected))
    assert await installation.rows(tools, "number", "state") == expected


async def test_a_value_is_created_if_its_type_takes_it_as_a_key(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    pattern = "kind: code, pattern: '[A-Z]-[0-9]+'"
    states = read_type(CHOSEN.replace("KEY", pattern), "states.yaml")
    tools = read_type(USING.replace("UNKNOWN", "create"), "tools.yaml")
    await installation.types.apply(states)
    await installation.types.apply(tools)
    sheet = await uploaded(sheets, tools, "number,state\n1,S-1\n2,s2\n3,x\n")
    assert {each.value for each in (await sheet.collect()).first_open} == {"s2", "x"}
    with pytest.raises(ApplicationError, match=r"does not match the pattern .*correct it in") as no:
        await sheet.decide(s2="create")
    assert no.value.type == INVALID_DECISION
    rule = CellRule(field="state", create=True)
    with pytest.raises(ApplicationError, match="does not take every key; decide about each value"):
        await sheet.decide_these((), rules=(rule,))
    await sheet.decide(s2="ignore", x="ignore")
    assert (await sheet.process()).counts == RowCounts(created=3)
    assert await installation.rows(tools, "state") == [("S-1",), (None,), (None,)]
    assert await installation.rows(states, "state") == [("S-1",)]


@pytest.mark.parametrize("unknown", ["ask", "create"])
async def test_a_person_decides_what_an_unknown_value_means(
    installation: Installation, sheets: SpreadsheetSetup, unknown: str
) -> None:
    await installation.run_sql("CREATE TABLE erp_sites (code text, name text)")
    await installation.run_sql("INSERT INTO erp_sites VALUES ('N', 'North'), ('S', 'South')")
    suppliers = read_type(SUPPLIERS, "suppliers.yaml")
    orders = read_type(ORDERS.replace("UNKNOWN", unknown), "orders.yaml")
    await installation.types.apply(suppliers)
    await installation.types.apply(orders)
    await installation.imported("suppliers", b"supplier\nACME\n")
    text = "number,supplier,site\n1,ACME,North\n2,Globex,S\n3,Acme Inc,Nort\n"
    sheet = await uploaded(sheets, orders, text)
    summary = await sheet.collect()
    asked = {each.value for each in summary.first_open}
    if unknown == "ask":
        assert asked == {"Globex", "Acme Inc", "Nort"}
        ids = {each.id: each.name for each in summary.candidates[0].first}
        acme = next(id for id, name in ids.items() if name == "ACME")
        north = next(e.id for e in summary.candidates[1].first if e.name == "North")
        chosen: dict[str, Any] = {"Acme Inc": acme, "Nort": north}
        await sheet.decide(Globex="create", **chosen)
        expected = ["ACME", "Globex", "ACME"]
    else:
        assert asked == {"Nort"}
        await sheet.decide(Nort="ignore")
        expected = ["ACME", "Globex", "Acme Inc"]
    assert (await sheet.process()).counts == RowCounts(created=3)
    rows = await installation.rows(orders, "supplier", "site")
    assert [row[0] for row in rows] == expected
    assert [row[1] for row in rows] == ["N", "S", "N" if unknown == "ask" else None]
    known = await installation.rows(suppliers, "supplier")
    assert {row[0] for row in known} == set(expected)


@pytest.mark.parametrize("key", [("position", "section"), ("section", "position")])
async def test_sections_and_numbers_are_those_above_a_row(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades, key: Sequence[str]
) -> None:
    declared = trades["tender_bids"].model_copy(update={"key": key})
    await installation.types.apply(declared)
    await installation.declare("timesheets")
    bids = (
        "Pos.;Leistung;Einheit;Menge;EP\n"
        ";Erdarbeiten und Pflaster;;;\n1.1;Aushub;m3;100;12,50\n1.2;Abfuhr;m3;80;9,00\n"
        ";Beton und Stahl;;;\n1.1;Fundament;m3;20;180,00\n"
    )
    sheet = await uploaded(sheets, declared, bids, project_id="P1", tender="T9")
    assert (await sheet.process()).counts.created == 3
    assert sorted(await installation.rows(declared, "position", "section")) == [
        ("1.1", "Beton und Stahl"),
        ("1.1", "Erdarbeiten und Pflaster"),
        ("1.2", "Erdarbeiten und Pflaster"),
    ]
    hours = (
        "Personalnummer;Tag;Beginn\n7;04.03.2025;08:00\n7;04.03.2025;13:00\n8;04.03.2025;09:00\n"
    )
    sheet = await uploaded(sheets, trades["timesheets"], hours, project_id="P1", site="north")
    assert (await sheet.process()).counts == RowCounts(created=3)
    assert await installation.rows(
        trades["timesheets"], "employee", "day", "sequence", "begins"
    ) == [
        ("7", date(2025, 3, 4), 1, time(8)),
        ("7", date(2025, 3, 4), 2, time(13)),
        ("8", date(2025, 3, 4), 1, time(9)),
    ]


async def test_columns_match_by_the_headers_of_the_type(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades
) -> None:
    await installation.declare("appointments")
    text = "N° RDV;Patient·e;Date et heure;Téléphone\n1;Zoé;24/3/2025 9:30;01 23 45 67 89\n"
    sheet = await uploaded(sheets, trades["appointments"], text, project_id="P1")
    assert {each.target: each.status for each in sheet.columns} == dict.fromkeys(
        ("appointment", "patient", "at", "phone"), MappingStatus.AUTO_MATCHED
    )
    assert (await sheet.process()).counts == RowCounts(created=1)


async def test_what_people_of_clubs_refer_to_is_imported_like_any_rows(
    sheets: SpreadsheetSetup,
) -> None:
    async def brought(kind: str, content: str, context: int | None = None) -> None:
        sheet = await sheets.prepare(
            content.encode(), import_type=kind, context_id=context, filename="rows.csv"
        )
        assert (await sheet.process()).counts.error == 0
        again = await sheets.prepare(
            content.encode(), import_type=kind, context_id=context, filename="rows.csv"
        )
        assert (await again.process()).counts.created == 0

    await brought("events", "Veranstaltung;Datum\nStadtlauf;10.05.2026\n")
    await brought("membership_types", "Mitgliedsart\nKind\nFamilie\n")
    await brought("custom_lists", "Key,List,Open\nSHIRT,T-shirt,yes\n")
    ((event, *_),) = await sheets.select("events", "id name starts_on")
    await brought("event_categories", "Kategorie\nU18\nSenior\n", event)
    await brought("races", "Lauf;Start\n10 km;2026-05-10 10:00\n", event)
    ((shirts,),) = await sheets.select("custom_lists", "id")
    await brought("custom_list_items", "Choice\nS\nM\n", shirts)
    people = "First name,Last name,Email,Category,T-shirt\nAnna,A,a@example.org,U18,S\n"
    sheet = await sheets.prepare(people.encode(), context_id=event)
    assert (await sheet.collect()).open == 0
    assert (await sheet.process()).counts == RowCounts(created=1)
    assert await sheets.select("membership_types", "organisation_id name spellings") == [
        (ORGANISATION, "Kind", "[]"),
        (ORGANISATION, "Familie", "[]"),
    ]


async def test_a_key_that_is_only_alike_is_no_reference(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades
) -> None:
    await installation.declare("parts")
    await installation.imported("parts", b"Teilenummer;Benennung\nA-1;Rahmen\nB 2 (alt);Rad\n")
    text = "Teilenummer;Benennung;Baugruppe\nA1;Neu;\nC-1;Achse;A1\nC-2;Achse;a-1\nC-3;Achse;B 2\n"
    sheet = await uploaded(sheets, trades["parts"], text)
    await sheet.collect()
    assert (await sheet.process()).counts == RowCounts(created=2, error=2)
    assert ("C-1", "A1") in await installation.rows(trades["parts"], "part", "assembly")


async def test_other_names_of_a_row_outlive_another_import(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    async def brought() -> RowCounts:
        sheet = await sheets.prepare(
            b"Mitgliedsart\nKind\n", import_type="membership_types", context_id=None
        )
        return (await sheet.process()).counts

    assert await brought() == RowCounts(created=1)
    await installation.run_sql("UPDATE membership_types SET spellings = '[\"Child\"]'")
    assert await brought() == RowCounts(skipped=1)
    assert await sheets.select("membership_types", "spellings") == [('["Child"]',)]


@pytest.mark.parametrize(
    ("strategy", "differs", "new"),
    [
        ("create_only", ("SKIPPED", KEPT), ("CREATED", None)),
        ("update_only", ("UPDATED", None), ("ERROR", UNKNOWN_ROW)),
        ("append", ("ERROR", KNOWN_ROW), ("CREATED", None)),
    ],
)
async def test_rows_against_the_strategy_are_explained(
    installation: Installation,
    sheets: SpreadsheetSetup,
    strategy: str,
    differs: tuple[str, str | None],
    new: tuple[str, str | None],
) -> None:
    text = SUPPLIERS.replace("scope: []\n", f"scope: []\nstrategy: {strategy}\n")
    declared = read_type(text + "  town: {}\n", "suppliers.yaml")
    await installation.types.apply(declared)
    rows = b"supplier,town\nACME,Bonn\nGlobex,Kiel\n"
    await installation.imported("suppliers", rows, strategy="merge")
    sheet = await uploaded(sheets, declared, "supplier,town\nACME,Ulm\nGlobex,Kiel\nNeu,Jena\n")
    await sheet.process()
    assert await sheets.select("spreadsheet_results", "line outcome message") == [
        (2, *differs),
        (3, "ERROR", KNOWN_ROW) if strategy == "append" else (3, "SKIPPED", UP_TO_DATE),
        (4, *new),
    ]


async def test_both_doors_append_numbered_rows(
    installation: Installation, sheets: SpreadsheetSetup, trades: Trades
) -> None:
    shape = trades["timesheets"].model_dump() | {"strategy": "append"}
    declared = DeclaredType.model_validate(shape)
    await installation.types.apply(declared)
    text = "Personalnummer;Tag;Beginn\n7;04.03.2025;08:00\n7;04.03.2025;13:00\n"
    for site in ("north", "south"):
        for task in ("T1", "T2"):
            scope = {"project_id": "P1", "site": site}
            if site == "north":
                given = {"scope": {"site": site}, "task_id": task, "idempotency_key": task}
                await installation.imported("timesheets", text.encode(), **given)
                continue
            sheet = await uploaded(sheets, declared, text, **scope)
            assert (await sheet.process()).counts == RowCounts(created=2)
    found = await installation.rows(declared, "site", "sequence", "begins")
    numbers = [(1, time(8)), (2, time(13)), (3, time(8)), (4, time(13))]
    assert found == [(site, *row) for site in ("north", "south") for row in numbers]


@pytest.mark.parametrize("left_out", ["note", "ask", "keep"])
async def test_rows_that_are_no_data_are_left_out_as_the_type_says(
    installation: Installation, sheets: SpreadsheetSetup, left_out: str
) -> None:
    text = ITEMS.replace("AMOUNT", "kind: decimal, units: [EUR]").replace(
        "key:", f"left_out: {left_out}\nkey:"
    )
    declared = read_type(text, "items.yaml")
    await installation.types.apply(declared)
    rows = "Posten;Betrag\nA;1\nB;2\nSumme;3\n"
    sent = await installation.imported("items", rows.encode(), max_rejected_share=1)
    sheet = await uploaded(sheets, declared, rows, project_id="P2")
    assert sheet.staged.asks_about_skipped is (sent.held_back is not None)
    assert sheet.staged.skipped_rows == (0 if left_out == "keep" else 1)
    await sheet.process()
    stored = {"A", "B", "Summe"} if left_out == "keep" else {"A", "B"}
    by_door = await installation.rows(declared, "project_id", "item")
    assert {item for project, item in by_door if project == "P2"} == stored
    if left_out != "ask":
        assert {item for project, item in by_door if project == "P1"} == stored


DEFAULTS = """
name: fees
title: Fees
key: [nr]
fields:
  nr: {required: true}
  name: {}
  price: {kind: money, default: "7"}
  since: {kind: date, default: 2024-01-31}
  open: {kind: boolean, default: "yes"}
"""


@pytest.mark.parametrize("count", [3, 1_500])
async def test_both_doors_write_defaults_of_absent_columns_into_new_rows(
    installation: Installation, sheets: SpreadsheetSetup, count: int
) -> None:
    declared = read_type(DEFAULTS, "fees.yaml")
    await installation.types.apply(declared)
    first = b"nr,name,price,since,open\n1,a,5,2025-03-04,no\n"
    content = "nr,name\n1,b\n" + "".join(f"{n},c\n" for n in range(2, count + 1))
    for project in ("P1", "P2", "P3"):
        await installation.imported("fees", first, project_id=project)
    await installation.imported("fees", content.encode(), task_id="T2", project_id="P1")
    sheet = await uploaded(sheets, declared, content, project_id="P2")
    await sheet.process()
    await sheet.finish()
    given = {"task_id": "T3", "project_id": "P3", "strategy": "replace"}
    await installation.imported("fees", content.encode(), **given)
    rows = await installation.rows(declared, "project_id", "nr", "price", "since", "open")
    new = (Decimal(7), date(2024, 1, 31), True)
    expected = [("1", Decimal(5), date(2025, 3, 4), False)]
    expected += sorted((str(n), *new) for n in range(2, count + 1))
    for project in ("P1", "P2", "P3"):
        assert sorted(row[1:] for row in rows if row[0] == project) == expected, project
    counts = (await undone(sheet)).counts
    assert (counts.deleted, counts.restored, counts.left_alone) == (count - 1, 1, 0)


REPLACED = ITEMS.replace("AMOUNT", "kind: decimal, units: [EUR]").replace(
    "key:", "strategy: replace\nkey:"
)
REPLACING = {
    "rows that the file lacks are removed": (
        "A;5\nD;4\n",
        ["A|5", "D|4"],
        "2 stored rows that the file lacks were removed",
    ),
    "not if a row of the file is rejected": (
        "A;5\nB;much\n",
        ["A|5", "B|2", "Summe|9"],
        "nothing was removed, because 1 row was rejected",
    ),
    "not if a row was left out that may be one of them": (
        "A;5\nB;2\nSumme;7\n",
        ["A|5", "B|2", "Summe|9"],
        "nothing was removed, because 'Summe' is the key of a stored row and of one that was left "
        "out",
    ),
    "nothing is said if no row is lacking": (
        "A;1\nB;2\nSumme;9\nC;1\n",
        ["A|1", "B|2", "C|1", "Summe|9"],
        None,
    ),
}
"""Rows of a file, what is stored afterwards, and what an upload says about it."""


@pytest.mark.parametrize("case", REPLACING)
async def test_both_doors_replace_the_rows_of_their_scope(
    installation: Installation, sheets: SpreadsheetSetup, case: str
) -> None:
    rows, wanted, note = REPLACING[case]
    declared = read_type(REPLACED, "items.yaml")
    await installation.types.apply(declared)
    for project in ("P1", "P2", "P3"):
        given: dict[str, Any] = {"project_id": project, "task_id": f"before-{project}"}
        text = "Posten;Betrag\nA;1\nB;2\nSumme;9\n"
        await installation.imported("items", text.encode(), **given)

    async def stored() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for project, item, amount in await installation.rows(
            declared, "project_id", "item", "amount"
        ):
            found.setdefault(project, []).append(f"{item}|{amount.normalize():f}")
        return found

    before = (await stored())["P3"]
    text = f"Posten;Betrag\n{rows}"
    await installation.imported("items", text.encode(), max_rejected_share=1, task_id="T2")
    sheet = await uploaded(sheets, declared, text, project_id="P2")
    processed = await sheet.process()
    assert processed.note == note
    assert await stored() == {"P1": wanted, "P2": wanted, "P3": before}
    assert (await sheet.process()).note == note
    await sheet.finish()
    await undone(sheet)
    assert (await stored())["P2"] == before


async def test_an_undo_leaves_a_removed_row_that_is_there_again(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    declared = read_type(REPLACED, "items.yaml")
    await installation.types.apply(declared)
    await installation.imported("items", b"Posten;Betrag\nA;1\nB;2\nC;3\n")
    sheet = await uploaded(sheets, declared, "Posten;Betrag\nA;1\n", project_id="P1")
    await sheet.process()
    await sheet.finish()
    await installation.imported("items", b"Posten;Betrag\nB;5\n", strategy="merge", task_id="T2")
    result = await undone(sheet)
    assert result.problems == ("items P1 / B was created again since",)
    assert (result.counts.restored, result.counts.left_alone) == (1, 1)
    found = await installation.rows(declared, "item", "amount")
    assert found == [("A", Decimal(1)), ("B", Decimal(5)), ("C", Decimal(3))]


async def test_a_dry_run_says_how_many_rows_a_file_lacks(
    installation: Installation, sheets: SpreadsheetSetup
) -> None:
    declared = read_type(REPLACED, "items.yaml")
    await installation.types.apply(declared)
    await installation.imported("items", b"Posten;Betrag\nA;1\nB;2\nC;3\n")
    sheet = await sheets.prepare(
        b"Posten;Betrag\nA;5\nD;1\n",
        import_type=declared.name,
        type_digest=declared.digest,
        scope={"project_id": "P1"},
        context_id=None,
        filename="rows.csv",
        dry_run=True,
    )
    assert (await sheet.process()).note == "2 stored rows that the file lacks would be removed"
    assert await installation.rows(declared, "item") == [("A",), ("B",), ("C",)]
