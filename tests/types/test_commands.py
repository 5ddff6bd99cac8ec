"""What the commands about types print."""

import asyncio
import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest

from adapters.database.access import SqlAudit
from adapters.database.engine import open_database
from adapters.ports.access import AuditEntry, AuditFilter
from adapters.types.files import own_types, people_types, read_own_type
from tests.support.cli import run_docflow
from tests.support.fresh_database import fresh_url
from workers.shared.cli.context import CliContext
from workflows.shared.declared_types import PeopleType

TOOLS = """
name: tools
title: Tools
key: [code]
fields:
  code: {kind: code, required: true}
"""


def test_a_type_is_planned_changed_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = fresh_url()
    context = CliContext({"DATABASE_URL": url, "DOCFLOW_TYPES": str(tmp_path), "USER": "ada"})

    def run(command: str, exit_code: int = 0) -> str:
        done = run_docflow("type", *command.split(), context=context)
        assert done.exit_code == exit_code, done.output
        return done.output

    file = tmp_path / "tools.yaml"
    file.write_text(TOOLS + "  price: {kind: money, currency: EUR}\nretention: 400 days\n")
    assert "is in force now" in run("apply")
    assert "nothing to do" in run("apply --dry-run")
    assert "retention: 400 days" in run("show tools")
    file.write_text(TOOLS + "  cost: {was: price, kind: money, currency: USD}\n")
    assert run("apply --dry-run").splitlines()[1:] == [
        "ALTER TABLE docflow_types.tools RENAME COLUMN price TO cost;",
        "ALTER TABLE docflow_types.staged_tools RENAME COLUMN price TO cost;",
        "DROP INDEX docflow_types.ix_tools_updated_at;",
        "-- changes of meaning:",
        "--   cost: currency: EUR becomes USD; stored values stay as they are",
        "--   retention: 400 days becomes none",
    ]
    assert "there is no declared type tool; did you mean 'tools'? there are tools" in run(
        "remove tool", 1
    )
    said = "tools is out of force; docflow_types.tools stays, with 0 rows"
    assert said in run("remove tools")
    run("apply")
    assert "docflow_types.tools is dropped, with 0 rows" in run("remove tools --drop-table")
    *_, third, second, first = found = asyncio.run(noted(url))
    assert [(each.action, each.object, each.status) for each in (first, second, third)] == [
        ("type apply", "tools", 0),
        ("type remove", "tool", 1),
        ("type remove", "tools", 0),
    ]
    assert first.before == {"tools": None} and first.after.keys() == {"tools"}
    assert {(each.who, each.by, each.from_where) for each in found} == {
        ("ada", "command", socket.gethostname())
    }


async def noted(url: str) -> Sequence[AuditEntry]:
    async with open_database(url) as database:
        return await SqlAudit(database).list(AuditFilter(others=True), 10)


def test_every_type_of_docflow_is_listed_and_shown(tmp_path: Path) -> None:
    context = CliContext({"DATABASE_URL": fresh_url()})
    listed = json.loads(run_docflow("type", "list", "--json", context=context).output)
    own = {each["name"] for each in listed}
    assert own == own_types().keys() >= {"equipment", "events", "PERSON", "RESULT"}
    for name in people_types():
        shown = run_docflow("type", "show", name, context=context).output
        assert read_own_type(shown, "again.yaml", PeopleType) == people_types()[name]
    for name, door in (
        ("PERSON", "# no files are of this type: "),
        ("equipment", "name: equipment"),
    ):
        assert run_docflow("type", "show", name, context=context).output.startswith(door)
    for name, scope in (("events", "organisation_id"), ("RESULT", "race_id")):
        done = run_docflow("type", "export", name, context=context)
        assert f"name one with --scope {scope}=ID" in done.output
        assert done.exit_code == 2


@pytest.mark.parametrize(
    ("target", "command", "left"),
    [
        ("table: yard", "remove tools", "its rows stay in yard in docflow's database"),
        (
            "table: yard",
            "remove tools --drop-table",
            "its rows stay in yard in docflow's database, which docflow never drops",
        ),
        ("file: csv", "remove tools", "the files of its accepted rows stay in the blob store"),
    ],
)
def test_removing_a_type_tells_where_its_rows_stay(
    tmp_path: Path, target: str, command: str, left: str
) -> None:
    url = fresh_url()
    context = CliContext({"DATABASE_URL": url, "DOCFLOW_TYPES": str(tmp_path)})
    (tmp_path / "tools.yaml").write_text(f"{TOOLS}scope: []\ntarget: {{{target}}}\n")

    async def make_table() -> None:
        connection = cast("Any", await asyncpg.connect(url))
        await connection.execute(
            "CREATE TABLE yard (code text PRIMARY KEY, n int NOT NULL DEFAULT 1)"
        )
        await connection.close()

    asyncio.run(make_table())
    planned = run_docflow("type", "apply", context=context).output
    note = "-- note: no field fills public.yard.n, which is NOT NULL: new rows get its default"
    assert (note in planned) == ("yard" in target), planned
    removed = run_docflow("type", *command.split(), context=context).output
    assert removed == f"tools is out of force; {left}\n"


def test_each_fault_of_a_file_is_told_in_a_line(tmp_path: Path) -> None:
    file = tmp_path / "tools.yaml"
    file.write_text("name: tools\nkey: [code]\nfields:\n  code: {}\ntitel: x\n")
    done = run_docflow("type", "check", str(file), str(file))
    assert done.stderr.splitlines() == [
        "docflow: tools.yaml: line 1: title: is missing; add it",
        "docflow: tools.yaml: line 5: titel: is not known here; did you mean 'title'?",
    ]


@pytest.mark.parametrize(
    ("command", "place"),
    [("check {file} {sample}", "events.yaml"), ("new events --from {sample}", "draft")],
)
def test_names_of_docflows_own_types_are_refused(tmp_path: Path, command: str, place: str) -> None:
    file, sample = tmp_path / "events.yaml", tmp_path / "events.csv"
    file.write_text(TOOLS.replace("tools", "events"))
    sample.write_text("code\nA\n")
    done = run_docflow("type", *command.format(file=file, sample=sample).split())
    assert done.exit_code == 1
    said = f"{place}: line 2: events is a type of docflow's own; choose another name"
    assert said in done.output
