"""Files as other trades write them become the same rows by every door and in every target."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
import xlsxwriter

from activities.spreadsheets.rows import SpreadsheetFiles
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.files.blobs import FolderBlobs
from adapters.ports.blobs import Blobs
from adapters.types.files import own_types
from tests.support.imports.activities import environment
from tests.support.spreadsheets.activities import SpreadsheetSetup
from tests.types.conftest import FILES, Erp
from tests.types.dying_writer import Work, killed
from tests.types.test_uploads import undone
from workflows.imports.runs import TaskKey
from workflows.shared.contracts import Problem
from workflows.shared.declared_types import DeclaredType
from workflows.spreadsheets.runs import HandOverInput, RowCounts, SpreadsheetInput

Outcome = tuple[list[str], list[Problem]]

BIDS = (
    ("Oferta: Rehabilitación Puente Norte",),
    ("Licitador: Obras del Sur S.A.",),
    (),
    ("Partida", "Descripción", "Ud", "Cantidad", "Precio unitario"),
    ("", "CAPÍTULO 1 MOVIMIENTO DE TIERRAS"),
    ("1.1", "Excavación en zanja", "m³", 1250.5, "12,40 €"),
    ("1.2", "Relleno con material propio", "m³", "1.980,25", 6.75),
    (),
    ("", "Total capítulo 1", "", "", 28872.89),
    ("", "CAPÍTULO 2 CIMENTACIONES"),
    ("1.1", "Hormigón HA-25", "m³", 85, 118),
    ("1.2", "Acero B500S", "kg", 7200, -1.35),
    ("1.3", "Encofrado", "m²", "doscientos", 24.1),
)


@dataclass(frozen=True)
class Trade:
    """What becomes of the file of a trade.

    Attributes:
        rows: Each row by its key: the values of the scope and of every field, in the order of the
            type.
        refused: Line and value of each cell that is refused to the beginning of the reason.
        scope: Values that all rows share, beside the project.
    """

    rows: tuple[str, ...]
    refused: Mapping[tuple[int, str | None], str]
    scope: Mapping[str, str] | None = None


TRADES: Final = {
    "invoice_lines": Trade(
        (
            "P1|RE-0001|1|Schrauben M8|100|1250|1487.5|paid|2025-03-04|2025-02-03|2025-02-28|DE",
            "P1|RE-0001|2|Öl, 5 l|2.5|30|35.7|paid|2025-03-05|||DE",
            'P1|RE-0002|1|Montage "Halle; Nord"||800|952|open||||AT',
            "P1|RE-0004|1|Gutschrift|1|-12|-10.08|open||||CH",
        ),
        {
            (9, "5,00 €"): "the net amount is higher than the gross amount",
            (10, "RE3"): "does not match the pattern",
        },
    ),
    "appointments": Trade(
        (
            "P1|17|Marie Curie|2025-03-04T13:30Z|+33123456789|m.curie@example.org|yes",
            "P1|18|Jean Perrin|2025-03-25T08:00Z|0123456780||no",
            "P1|19|Zoé Noël|2025-07-01T06:15Z||zoe@example.org|no",
        ),
        {
            (7, "31/02/2025 10:00"): "is not a day with a time",
            (8, "paul(at)example.org"): "is not a mail address",
        },
    ),
    "parts": Trade(
        (
            "0100|Rahmen, geschweißt|FB-200|1|S235JR",
            "0110|Längsträger|0100|2|S235JR",
            "0210|Rollensatz|FB-200|1|",
            "200|Rolle Ø 89|0210|12|",
            "FB-200|Förderband||1|",
        ),
        {(10, "FB-900"): "is not in", (11, "0"): "is less than 1"},
    ),
    "timesheets": Trade(
        (
            "P1|Norte|007|2025-03-04|1|08:00|12:00|900000|no|Cimentación",
            "P1|Norte|007|2025-03-04|2|13:00|17:30||no|",
            "P1|Norte|112|2025-03-04|1|07:45|16:15|2700000|yes|Grúa; turno largo",
        ),
        {
            (8, "08.00"): "is not a time of day",
            (8, "30"): "is a number without a unit",
            (9, "32/03/2025"): "is not a date",
            (10, "25:00"): "is not a time of day",
            (11, None): "is missing",
        },
        {"site": "Norte"},
    ),
    "tender_bids": Trade(
        (
            "P1|2025-7|1.1|CAPÍTULO 1 MOVIMIENTO DE TIERRAS|Excavación en zanja|m³|1250.5|12.4",
            "P1|2025-7|1.1|CAPÍTULO 2 CIMENTACIONES|Hormigón HA-25|m³|85|118",
            "P1|2025-7|1.2|CAPÍTULO 1 MOVIMIENTO DE TIERRAS|Relleno con material propio"
            "|m³|1980.25|6.75",
        ),
        {
            (9, None): "is missing",
            (12, "-1.35"): "is negative",
            (13, "doscientos"): "is not a number",
        },
        {"tender": "2025-7"},
    ),
}
CELLS: Final = (
    ("queue", "own"),
    ("queue", "yours"),
    ("queue", "file"),
    ("upload", "own"),
    ("upload", "yours"),
    ("upload", "file"),
)
"""Doors and the targets behind them."""
COLUMNS: Final = {
    "integer": "integer",
    "decimal": "numeric(12, 3)",
    "money": "numeric(12, 2)",
    "date": "date",
    "time": "time",
    "duration": "bigint",
    "timestamp": "timestamptz",
    "boolean": "boolean",
    "sequence": "smallint",
}
"""Kind of a field to the column that a team has for it; text for any other."""


def shown(row: tuple[Any, ...]) -> str:
    """A row as `Trade` has it."""

    def plain(value: Any) -> str:
        match value:
            case None:
                return ""
            case bool():
                return "yes" if value else "no"
            case Decimal():
                return f"{value.normalize():f}"
            case datetime():
                return f"{value:%Y-%m-%dT%H:%MZ}"
            case time():
                return f"{value:%H:%M}"
            case date():
                return value.isoformat()
            case _:
                return str(value)

    return "|".join(map(plain, row))


def content_of(trade: str, folder: Path) -> bytes:
    """The file of a trade."""
    if trade != "tender_bids":
        return (FILES / f"{trade}.csv").read_bytes()
    with xlsxwriter.Workbook(path := folder / "bids.xlsx") as book:
        sheet = book.add_worksheet("Presupuesto")
        for line, row in enumerate(BIDS):
            sheet.write_row(line, 0, row)
        sheet.merge_range("A1:E1", BIDS[0][0])
    return path.read_bytes()


async def placed(erp: Erp, declared: DeclaredType, target: str) -> DeclaredType:
    """The type with this target, put in force."""
    names = (*declared.scope, *declared.fields)
    if target == "yours":
        kinds = {name: COLUMNS.get(field.kind, "text") for name, field in declared.fields.items()}
        columns = ", ".join(f"{name} {kinds.get(name, 'text')}" for name in names)
        key = ", ".join(declared.natural_key)
        await erp.sql(f"CREATE TABLE {declared.name} ({columns}, UNIQUE ({key}))")
    wanted = {
        "own": None,
        "yours": {"database": "erp", "table": declared.name},
        "file": {"file": "parquet"},
    }
    given = declared.model_dump() | {"target": wanted[target], "unmapped": "ignore"}
    found = DeclaredType.model_validate(given)
    await erp.installation.types.apply(found)
    return found


async def rows_of(erp: Erp, declared: DeclaredType, blobs: Blobs) -> list[str]:
    """The rows in the target of a type."""
    names = (*declared.scope, *declared.fields)
    if declared.target is None:
        rows = await erp.installation.rows(declared, *names)
    elif declared.target.table is not None:
        rows = await erp.sql(f"SELECT {', '.join(names)} FROM {declared.name}")
    else:
        path = erp.installation.ports.folder / "accepted"
        [file] = await blobs.list("accepted/", 2)
        await blobs.download(file.name, path)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            columns = ", ".join(f'"{name}"' for name in names)
            query = f"SELECT {columns} FROM read_parquet('{path}')"
            rows = connection.execute(query).fetchall()
    return sorted(map(shown, rows))


async def sent(erp: Erp, declared: DeclaredType, content: bytes, trade: Trade) -> Outcome:
    """The rows and refusals of a message."""
    installation = erp.installation
    given: dict[str, Any] = {"scope": trade.scope} if trade.scope else {}
    await installation.imported(declared.name, content, max_rejected_share=1, **given)
    pages = installation.store.rejects(TaskKey("P1", "T1"))
    problems = [each async for page in pages for row in page for each in row.problems]
    return await rows_of(erp, declared, installation.ports.blobs), problems


async def uploaded(erp: Erp, declared: DeclaredType, content: bytes, trade: Trade) -> Outcome:
    """The rows and refusals of an upload."""
    database, folder = erp.installation.database, erp.installation.ports.folder
    store = SqlSpreadsheetStore(database, erp.targets)
    sheets = SpreadsheetSetup(folder, database, store, types=SheetTypes(database))
    scope = {"project_id": "P1", **(trade.scope or {})}
    sheet = await sheets.prepare(
        content,
        import_type=declared.name,
        type_digest=declared.digest,
        scope={name: scope[name] for name in declared.scope},
        context_id=None,
        filename="file",
    )
    assert (await sheet.collect()).open == 0
    done = await sheet.process()
    if done.hands_over:
        files = SpreadsheetFiles(store, sheets.blobs, sheets.types, sheets.scratch, {})
        work = HandOverInput(order=sheet.order, counts=done.counts)
        await environment().run(files.hand_over, work)
    pages = store.errors(sheet.order.uuid)
    problems = [each async for page in pages for _, row in page for each in row]
    return await rows_of(erp, declared, sheets.blobs), problems


DOORS: Final = {"queue": sent, "upload": uploaded}


@pytest.mark.parametrize(("door", "target"), CELLS)
@pytest.mark.parametrize("name", TRADES)
async def test_a_file_becomes_the_same_rows_everywhere(
    erp: Erp,
    trades: dict[str, DeclaredType],
    tmp_path: Path,
    name: str,
    door: str,
    target: str,
) -> None:
    declared = await placed(erp, trades[name], target)
    trade = TRADES[name]
    rows, problems = await DOORS[door](erp, declared, content_of(name, tmp_path), trade)
    assert rows == sorted(trade.rows)
    refused = {(each.line, each.value): each.reason for each in problems if each.line}
    assert refused.keys() == trade.refused.keys(), refused
    for place, reason in trade.refused.items():
        assert refused[place].startswith(reason), refused


DIES: Final = {
    ("queue", "own"): ("sent", "write"),
    ("queue", "yours"): ("merge", "write"),
    ("queue", "file"): ("file", "stage"),
    ("upload", "own"): ("own", "write"),
    ("upload", "yours"): ("upload", "write"),
    ("upload", "file"): ("handed", "write"),
}
"""Doors and targets to the kind of work, and to what a process dies behind."""


@pytest.mark.chaos
@pytest.mark.parametrize(("door", "target"), CELLS)
@pytest.mark.parametrize("name", TRADES)
async def test_a_file_becomes_the_same_rows_if_each_chunk_kills_its_process(
    erp: Erp,
    trades: dict[str, DeclaredType],
    tmp_path: Path,
    name: str,
    door: str,
    target: str,
) -> None:
    declared, trade = await placed(erp, trades[name], target), TRADES[name]
    folder = tmp_path / "work"
    folder.mkdir()
    scope = dict(trade.scope or {})
    Work(declared, content_of(name, tmp_path), scope, chunk_rows=2).put(folder)
    kind, step = DIES[door, target]
    # Rows with a period are seen by nobody before all are.
    step = "stage" if door == "queue" and declared.period else step
    kills = 0
    # Their commit comes before that of docflow: the chunk of a process that died is done again.
    repeats = target == "yours" and step == "write"
    url = erp.installation.database.engine.url.render_as_string(hide_password=False)
    where = (url, erp.url, "http://127.0.0.1:1", folder, kind, step)
    while await killed(*where, 2 if repeats and kills else 1):
        kills += 1
        assert kills < 20
    assert kills > 1
    assert await rows_of(erp, declared, FolderBlobs(folder / "blobs")) == sorted(trade.rows)
    if door == "queue":
        pages = erp.installation.store.rejects(TaskKey("P1", "T1"))
        problems = [each async for page in pages for row in page for each in row.problems]
    else:
        order = SpreadsheetInput.model_validate_json((folder / "order.json").read_text())
        errors = SqlSpreadsheetStore(erp.installation.database, erp.targets).errors(order.uuid)
        problems = [each async for page in errors for _, row in page for each in row]
    assert {(each.line, each.value) for each in problems if each.line} == trade.refused.keys()


@pytest.mark.parametrize("name", TRADES)
async def test_both_doors_say_the_same_of_a_row(
    erp: Erp, trades: dict[str, DeclaredType], tmp_path: Path, name: str
) -> None:
    declared, content = await placed(erp, trades[name], "own"), content_of(name, tmp_path)
    by_message, by_upload = [
        {
            (each.line, each.column, each.value, each.reason)
            for each in (await door(erp, declared, content, TRADES[name]))[1]
            if each.line
        }
        for door in DOORS.values()
    ]
    assert by_message == by_upload


OWN: Final = {
    "equipment": "code,description,rate\nE-1,Crane,450\nE-2,Welder,12.5\n",
    "material": "code,description,unit,price\nM-1,Pipe,m,12.5\n",
    "crew": "code,name,output_per_hour\nC-1,Pipe crew,1.5\n",
    "crew_member": "employee_no,valid_from,crew\nE-1,2024-01-01,C-1\nE-1,2025-01-01,C-2\n",
    "crew_trade": "code,name,straight_rate\nT-1,Fitter,45\n",
    "mto": "drawing,commodity_code,size,quantity\nISO-1,P-100,2,12\nISO-1,P-100,2,3\n",
    "estimation_master": "item_code,description,quantity,unit_rate\nI-1,Pipe,3,12\n",
}
"""docflow's own types that come in by both doors, and a file of each."""


@pytest.mark.parametrize("name", OWN)
async def test_an_upload_of_a_type_of_docflow_makes_the_rows_of_a_message(
    erp: Erp, tmp_path: Path, name: str
) -> None:
    declared, content = own_types()[name], OWN[name].encode()
    scope = {"project_id": "P1", "service_id": "S1"}
    more = {each: scope[each] for each in declared.scope if each != "project_id"}
    rows = (await erp.installation.imported(name, content, **more)).counts.created
    assert rows == len(content.splitlines()) - 1
    database = erp.installation.database
    store = SqlSpreadsheetStore(database, erp.targets)
    sheets = SpreadsheetSetup(tmp_path / "sheets", database, store, types=SheetTypes(database))
    sheets.folder.mkdir()
    for project, counts in (("P1", RowCounts(skipped=rows)), ("P2", RowCounts(created=rows))):
        sheet = await sheets.prepare(
            content,
            import_type=name,
            type_digest=declared.digest,
            scope={each: {**scope, "project_id": project}[each] for each in declared.scope},
            context_id=None,
            filename="rows.csv",
        )
        assert (await sheet.collect()).open == 0
        assert (await sheet.process()).counts == counts
        await sheet.finish()
    assert (await undone(sheet)).counts.deleted == rows
