"""`docflow import submit --dry-run`: what would happen, and that nothing does."""

import asyncio
import errno
import json
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest
from click.testing import Result

from activities.imports.store import SqlImportStore
from adapters.database.engine import open_database
from adapters.database.models.every import metadata
from adapters.files.tables.source import open_table
from tests.support.cli import run_docflow
from tests.support.fresh_database import fresh_url
from tests.support.imports.schedules import SAMPLES
from tests.support.imports.store import chunk, count
from workers.shared.cli.context import CliContext
from workflows.imports.messages import Strategy
from workflows.imports.runs import TaskKey

HEADER = "code,description,rate"
EQUIPMENT = "project_id code description"


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with two machines, and a schedule."""

    async def fill(url: str) -> None:
        async with open_database(url) as database:
            store = SqlImportStore(database)
            rows = [("P1", "E-1", "Crane"), ("P1", "E-2", "Welder"), ("P2", "E-3", "Other")]
            await store.write(
                TaskKey("P1", "T0"), chunk("equipment", EQUIPMENT, *rows), Strategy.MERGE
            )

    url = fresh_url()
    asyncio.run(fill(url))
    return url


def rows_of(url: str) -> dict[str, int]:
    async def counted() -> dict[str, int]:
        async with open_database(url) as database:
            return {table.name: await count(database, table) for table in metadata.sorted_tables}

    return asyncio.run(counted())


def submit(url: str, *arguments: str) -> Result:
    context = CliContext({"DATABASE_URL": url})
    return run_docflow("import", "submit", *arguments, context=context)


def table_in(folder: Path, name: str, *rows: str) -> Path:
    file = folder / name
    file.write_text("\n".join((HEADER, *rows)))
    return file


def dry(url: str, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    done = submit(url, *arguments, "--project", "P1", "--dry-run", "-o", "json")
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_everything_is_counted_and_nothing_is_written(url: str, tmp_path: Path) -> None:
    before = rows_of(url)
    file = table_in(tmp_path, "e.csv", "E-1,Crane", "E-2,New", "E-9,Saw", "E-8,Lift,much")
    (found,) = dry(url, str(file), "--type", "equipment")
    counts = found["counts"]
    assert {name: number for name, number in counts.items() if number} == {
        "created": 1,
        "updated": 1,
        "unchanged": 1,
        "rejected": 1,
    }
    assert found["problems"][0]["column"] == "rate"
    assert found["parks"] is None
    replaced = dry(
        url,
        str(table_in(tmp_path, "r.csv", "E-1,Crane")),
        "--type",
        "equipment",
        "--strategy",
        "replace",
    )
    assert replaced[0]["counts"]["deleted"] == 1
    assert rows_of(url) == before


def test_what_a_column_means_is_given_with_the_document(url: str, tmp_path: Path) -> None:
    file = tmp_path / "e.csv"
    file.write_text("Tag,Tagessatz\nE-1,1.234\n")
    (parks,) = dry(url, str(file), "--type", "equipment", code=4)
    assert "code" in parks["parks"]
    named = ("--map", "Tag=code", "--map", "Tagessatz=rate", "--set", "decimal=,")
    (found,) = dry(url, str(file), "--type", "equipment", *named)
    assert (found["parks"], found["counts"]["updated"]) == (None, 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--set", "colour=red"), "equipment has no field colour"),
        (("--set", "date_order=ymd"), "date_order: Input should be 'dmy' or 'mdy'"),
        (("--set", "blob_name=jobs/x"), "blob_name follows from FILE"),
        (("--set", "task_id=T2"), "keeps its task_id"),
        (("--schedule", "U100"), "has no field schedule_id"),
        (("--map", "Tag"), "write NAME=VALUE"),
    ],
)
def test_a_field_that_cannot_be_set_is_named(
    url: str, tmp_path: Path, options: tuple[str, str], says: str
) -> None:
    file = table_in(tmp_path, "e.csv", "E-1,Crane")
    done = submit(url, str(file), "--type", "equipment", "--project", "P1", "--dry-run", *options)
    assert (done.exit_code, says in done.stderr) == (2, True), done.output


def test_a_temporary_folder_without_room_is_named(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("workers.imports.rehearsal.TemporaryDirectory", full)
    file = table_in(tmp_path, "e.csv", "E-1,Crane")
    done = submit(url, str(file), "--type", "equipment", "--project", "P1", "--dry-run")
    says = f"docflow: the dry run cannot write to {gettempdir()} ("
    assert (done.exit_code, done.stderr.startswith(says)) == (1, True), done.output
    assert "No space left on device" in done.output


def test_a_pooler_that_keeps_no_session_is_refused(url: str, tmp_path: Path) -> None:
    context = CliContext({"DATABASE_URL": url, "DOCFLOW_DATABASE_STATEMENTS": "0"})
    file = table_in(tmp_path, "e.csv", "E-1,Crane")
    words = ("submit", str(file), "--type", "equipment", "--project", "P1", "--dry-run")
    done = run_docflow("import", *words, context=context)
    assert (done.exit_code, "is behind a pooler" in done.stderr) == (1, True), done.output


def test_the_report_can_be_kept(url: str, tmp_path: Path) -> None:
    file = table_in(tmp_path, "e.csv", "E-8,Lift,much", "E-9,Saw,1")
    report = tmp_path / "problems.xlsx"
    done = submit(
        url,
        *(str(file), "--type", "equipment", "--project", "P1", "--dry-run"),
        *("--report", str(report)),
    )
    assert done.exit_code == 0, done.output
    assert "nothing was written" in done.stdout
    with open_table(report) as table:
        rows = [cells for _, cells in table.rows()]
    assert rows[1][1:4] == ["E-8", "Lift", "much"]


def test_a_folder_is_tried_file_by_file(url: str, tmp_path: Path) -> None:
    folder = tmp_path / "march"
    folder.mkdir()
    table_in(folder, "b.csv", "E-5,Saw")
    table_in(folder, "a.csv", "E-4,Saw")
    (folder / ".hidden").write_text("no table")
    (folder / "~$a.xlsx").write_text("lock of a workbook that is open")
    single = table_in(tmp_path, "c.csv", "E-6,Saw")
    found = dry(url, str(folder), str(single), "--type", "equipment")
    assert [Path(each["file"]).name for each in found] == ["a.csv", "b.csv", "c.csv"]
    assert [each["counts"]["created"] for each in found] == [1, 1, 1]
    (tmp_path / "empty").mkdir()
    refused = submit(url, str(tmp_path / "empty"), "--type", "equipment", "--project", "P1")
    assert refused.exit_code == 2
    assert "holds no files" in refused.stderr


def test_the_notation_of_a_table_can_be_given(url: str, tmp_path: Path) -> None:
    file = tmp_path / "rates.csv"
    file.write_text('code,Price a day,Remark\nE-1,"1,234",x\nE-2,abc,y\n')
    options = ("--type", "equipment", "--map", "Price a day=rate", "--map", "Remark=-")
    (found,) = dry(
        url,
        *(str(file), *options, "--decimal", ",", "--date-order", "dmy"),
        *("--leading-zeros", "same", "--max-rejected-share", "0.2"),
        code=4,
    )
    assert [each["value"] for each in found["problems"]] == ["abc"]
    assert "more than the share of 0.2 allowed" in found["parks"]


def test_what_would_park_says_why(url: str, tmp_path: Path) -> None:
    file = tmp_path / "strange.csv"
    file.write_text("nothing,known\n1,2\n")
    (found,) = dry(url, str(file), "--type", "equipment", code=4)
    assert "code" in found["parks"]


def test_schedules_and_operations_are_tried_too(url: str) -> None:
    before = rows_of(url)
    schedule = str(SAMPLES / "unit100.xer")
    (found,) = dry(url, schedule, "--type", "schedule_extraction", "--primavera-project", "UNIT100")
    assert found["counts"]["created"] == 196
    (upload,) = dry(url, schedule, "--type", "schedule_upload", "--target-blob", "schedules/a.xer")
    assert upload["counts"]["created"] == 1
    (deleted,) = dry(url, "--type", "mto_delete", "--service", "S1")
    assert deleted["note"] == "Service S1 had no rows."
    (filled,) = dry(url, "--type", "schedule_fill_level", "--payload", '{"level": 1, "value": "x"}')
    assert filled["note"] == "no activity matched"
    assert rows_of(url) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--report", "x.xlsx"), "--report goes with --dry-run"),
        (("--task", "T1"), "--task and --report go with one FILE"),
    ],
)
def test_options_that_do_not_go_together(
    url: str, tmp_path: Path, options: tuple[str, ...], says: str
) -> None:
    files = [str(table_in(tmp_path, f"{n}.csv", "E-1,x")) for n in range(2)]
    given = files if "--task" in options else files[:1]
    refused = submit(url, *given, "--type", "equipment", "--project", "P1", *options)
    assert refused.exit_code == 2
    assert says in refused.stderr
