"""A check of a package: it sees typed rows of both doors, and its problems are those of rows."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.imports import column_table
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from adapters.installed import Installed
from adapters.types import checks
from adapters.types.files import installed_types, read_type
from tests.support.cli import run_docflow
from tests.support.spreadsheets.activities import SpreadsheetSetup
from tests.types.conftest import Installation
from workflows.imports.runs import Counts
from workflows.shared.declared_types import DeclaredType, RowCheck
from workflows.spreadsheets.runs import RowCounts

PARTS = """part_no,name,ean,price
B-1,Bolt,4006381333931,1.20
B-2,Nut,4006381333932,0.80
B-3,Washer,,0.10
B-4,,12,0.10
"""
WRONG = "has a wrong check digit; compare it with the label"
MISSING = r"spare_parts: the check 'ean' is not installed on this machine; installed are: none\."


@pytest.fixture
def parts(site: Path, monkeypatch: pytest.MonkeyPatch) -> DeclaredType:
    """The type of the package, whose check is installed."""
    monkeypatch.syspath_prepend(str(site))
    found = checks.installed_checks.__wrapped__()
    monkeypatch.setattr(checks, "installed_checks", lambda: found)
    [declared] = [each.declared for each in installed_types()]
    return declared


@contextmanager
def installed(**functions: RowCheck) -> Generator[None]:
    """Have these checks alone, as on another machine."""
    every = Installed(functions, dict.fromkeys(functions, "parts-extension"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "installed_checks", lambda: every)
        yield


def sheets(installation: Installation, folder: Path) -> SpreadsheetSetup:
    database = installation.database
    store, types = SqlSpreadsheetStore(database), SheetTypes(database)
    return SpreadsheetSetup(folder, database, store, types=types)


@pytest.mark.parametrize("column_bytes", [0, column_table.COLUMN_BYTES])
async def test_a_message_rejects_rows_that_a_check_refuses(
    installation: Installation,
    parts: DeclaredType,
    monkeypatch: pytest.MonkeyPatch,
    column_bytes: int,
) -> None:
    monkeypatch.setattr(column_table, "COLUMN_BYTES", column_bytes)
    await installation.types.apply(parts)
    done = await installation.imported("spare_parts", PARTS.encode())
    assert done.counts == Counts(created=2, rejected=2), done
    assert [(each.line, each.column, each.reason) for each in done.problems] == [
        (3, "ean", WRONG),
        # A row that is wrong already is not checked.
        (5, "name", "is missing"),
    ]
    with installed(), pytest.raises(ApplicationError, match=MISSING):
        await installation.imported("spare_parts", PARTS.encode(), task_id="T2")


async def test_an_upload_rejects_rows_that_a_check_refuses(
    installation: Installation, parts: DeclaredType, tmp_path: Path
) -> None:
    await installation.types.apply(parts)
    setup = sheets(installation, tmp_path)
    sheet = await setup.prepare(
        PARTS.encode(),
        import_type=parts.name,
        type_digest=parts.digest,
        scope={"project_id": "P1"},
        context_id=None,
        filename="parts.csv",
    )
    with installed(), pytest.raises(ApplicationError, match=MISSING):
        await sheet.process()
    with installed(ean=fails), pytest.raises(ApplicationError, match="with part_no B-1: KeyError"):
        await sheet.process()
    assert (await sheet.process()).counts == RowCounts(created=2, error=2)
    pages = [page async for page in setup.store.errors(sheet.order.uuid)]
    assert {line: problems[0].reason for page in pages for line, problems in page} == {
        3: WRONG,
        5: "is missing",
    }


READINGS = read_type(
    "name: readings\ntitle: Readings\nscope: [site]\nkey: [meter]\nfields:\n"
    "  meter: {kind: code, required: true}\n  day: {kind: date}\n  value: {kind: decimal}\n"
    "  amount: {kind: integer}\n  paid: {kind: boolean}\n  took: {kind: duration}\n  note: {}\n",
    "readings.yaml",
).model_copy(update={"checks": ("sees",)})
CELLS = b"meter,day,value,amount,paid,took\nM-1,2025-03-04,1.5,3,yes,0:01:02\n"
VALUES = {
    "site": "north",
    "meter": "M-1",
    "day": date(2025, 3, 4),
    "value": Decimal("1.5"),
    "amount": 3,
    "paid": True,
    "took": 62_000,
    "note": None,
}


@pytest.mark.parametrize("door", ["message", "upload"])
async def test_a_check_sees_the_typed_values_of_its_row(
    installation: Installation, tmp_path: Path, door: str
) -> None:
    seen: list[Mapping[str, Any]] = []

    def sees(values: Mapping[str, Any]) -> list[tuple[str, str]]:
        seen.append(dict(values))
        return []

    await installation.types.apply(READINGS)
    with installed(sees=sees):
        if door == "message":
            done = await installation.imported("readings", CELLS, scope={"site": "north"})
            assert done.counts == Counts(created=1), done
        else:
            sheet = await sheets(installation, tmp_path).prepare(
                CELLS,
                import_type=READINGS.name,
                type_digest=READINGS.digest,
                scope={"site": "north"},
                context_id=None,
                filename="readings.csv",
            )
            assert (await sheet.process()).counts == RowCounts(created=1)
    assert seen and all(each == VALUES for each in seen), seen


def fails(values: Mapping[str, Any]) -> Any:
    raise KeyError("rate")


def returns_a_number(values: Mapping[str, Any]) -> Any:
    return 1


def names_no_field(values: Mapping[str, Any]) -> Any:
    yield "weight", "is too small"


def gives_no_text(values: Mapping[str, Any]) -> Any:
    yield "value", None


def changes_values(values: Any) -> Any:
    values["value"] = 1


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (fails, "KeyError: 'rate'"),
        (returns_a_number, "TypeError: 'int' object is not iterable"),
        (names_no_field, "ValueError: it names the field 'weight', which readings does not have"),
        (gives_no_text, "TypeError: the reason None is no text"),
        (changes_values, "TypeError: 'mappingproxy' object does not support item assignment"),
    ],
)
async def test_a_check_that_fails_parks_and_is_named(
    installation: Installation, check: RowCheck, said: str
) -> None:
    await installation.types.apply(READINGS)
    with installed(sees=check), pytest.raises(ApplicationError) as parked:
        await installation.imported("readings", CELLS, scope={"site": "north"})
    assert parked.value.type == "Permanent"
    assert parked.value.message == (
        f"the check 'sees' of the package parts-extension fails at the row with meter M-1: {said}. "
        "Install a repaired package, restart workers, and retry"
    )


async def test_a_check_that_says_too_much_is_cut(installation: Installation) -> None:
    def says_much(values: Mapping[str, Any]) -> Any:
        while True:
            yield "value", "x\0" * 1_000

    await installation.types.apply(READINGS)
    with installed(sees=says_much):
        done = await installation.imported("readings", CELLS, scope={"site": "north"})
    assert done.counts == Counts(rejected=1)
    assert {len(each.reason) for each in done.problems} == {500}
    assert len(done.problems) <= checks.MOST_PROBLEMS


def test_types_check_runs_the_checks_of_a_type(
    parts: DeclaredType, site: Path, tmp_path: Path
) -> None:
    file, sample = site / "parts_extension/types/spare_parts.yaml", tmp_path / "parts.csv"
    sample.write_text(PARTS)
    done = run_docflow("type", "check", str(file), str(sample))
    assert (done.exit_code, "ean has a wrong check digit" in done.output) == (1, True), done.output
    assert "4 rows: 2 accepted, 2 rejected" in done.output
    with installed():
        done = run_docflow("type", "check", str(file), str(sample))
    assert "spare_parts.yaml: line 4: checks.1: the check 'ean' is not installed" in done.output
