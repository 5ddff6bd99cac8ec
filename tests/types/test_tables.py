"""Types are put in force: their tables are made and widened, and nothing is lost unasked."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from sqlalchemy import inspect

from adapters.types.files import read_type, type_text
from adapters.types.tables import SCHEMA
from tests.types.conftest import Installation
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation

HEAD = "name: tools\ntitle: Tools\nkey: [code]\n"
FIRST = HEAD + "fields:\n  code: {kind: code, required: true}\n  price: {kind: integer}\n"


def tools(text: str) -> DeclaredType:
    return read_type(text, "tools.yaml")


async def columns(installation: Installation, table: str) -> dict[str, str]:
    async with installation.database.reading() as connection:
        found = await connection.run_sync(lambda c: inspect(c).get_columns(table, schema=SCHEMA))
    return {each["name"]: str(each["type"]) for each in found}


async def test_a_plan_changes_nothing_and_apply_does_what_it_says(
    installation: Installation,
) -> None:
    types = installation.types
    [planned] = await types.plan(tools(FIRST))
    assert await types.in_force() == {}
    assert [change.sql.split(" (")[0] for change in planned.changes] == [
        "CREATE SCHEMA docflow_types",
        "CREATE TABLE docflow_types.tools",
        "CREATE TABLE docflow_types.staged_tools",
    ]
    assert await types.apply(tools(FIRST)) == [planned]
    assert await types.in_force() == {"tools": tools(FIRST)}
    [again] = await types.plan(tools(FIRST))
    assert [again] == await types.apply(tools(FIRST))
    assert (again.changes, again.meanings) == ([], ())
    assert (await columns(installation, "tools"))["price"] == "BIGINT"


async def test_columns_are_added_and_widened(installation: Installation) -> None:
    await installation.types.apply(tools(FIRST))
    await installation.run_sql(
        "INSERT INTO docflow_types.tools VALUES ('P1', 'T-1', 5, 1, 'T', 2, now(), now())"
    )
    wider = tools(FIRST.replace("kind: integer", "kind: money") + "  maker: {}\n")
    [plan] = await installation.types.apply(wider)
    assert (len(plan.changes), plan.losses) == (4, [])
    found = await columns(installation, "tools")
    assert (found["price"], found["maker"]) == ("NUMERIC(20, 6)", "TEXT")
    assert [row[1] for row in await installation.rows(wider, "code", "price")] == [5]
    assert (await installation.types.in_force())["tools"] == wider
    assert await installation.types.version(tools(FIRST).digest) == tools(FIRST)


async def test_what_would_lose_values_is_refused_until_a_person_says_so(
    installation: Installation,
) -> None:
    await installation.types.apply(tools(FIRST))
    narrower = tools(HEAD + "fields:\n  code: {kind: code, required: true}\n")
    await installation.imported("tools", b"code,price\nA,3\n")
    with pytest.raises(RuleViolation, match=r"lose the values of price.*--allow-loss"):
        await installation.types.apply(narrower)
    assert "price" in await columns(installation, "tools")
    assert (await installation.types.in_force())["tools"] == tools(FIRST)
    await installation.types.apply(narrower, allow_loss=True)
    assert "price" not in await columns(installation, "tools")


async def test_a_key_cannot_be_changed(installation: Installation) -> None:
    await installation.types.apply(tools(FIRST))
    other = FIRST.replace("key: [code]", "key: [code, price]")
    other = other.replace("kind: integer", "kind: integer, required: true")
    with pytest.raises(RuleViolation, match="rows cannot be given another key"):
        await installation.types.plan(tools(other))


async def test_a_part_of_a_key_keeps_its_type(installation: Installation) -> None:
    await installation.types.apply(tools(FIRST))
    other = FIRST.replace("code: {kind: code", "code: {kind: integer")
    with pytest.raises(
        RuleViolation, match=r"line \d+: code is part of the key of docflow_types\.tools"
    ):
        await installation.types.apply(tools(other), allow_loss=True)
    assert (await columns(installation, "tools"))["code"] == "TEXT"


async def test_types_may_refer_to_each_other(installation: Installation) -> None:
    text = "name: {0}\ntitle: T\nkey: [a]\nfields:\n  a: {{kind: code, required: true}}\n"
    pair = [
        tools((text + "  b: {{kind: reference, to: {1}}}\n").format(*names))
        for names in (("left", "right"), ("right", "left"))
    ]
    for each in await installation.types.plan(*pair), await installation.types.apply(*pair):
        made = [change.sql for plan in each for change in plan.changes]
        assert made.count(f"CREATE SCHEMA {SCHEMA}") == 1
    assert set(await installation.types.in_force()) == {"left", "right"}


async def test_two_that_apply_at_once_take_turns(installation: Installation) -> None:
    first, second = tools(FIRST), tools(FIRST + "  maker: {}\n")
    await installation.types.apply(second)
    await installation.imported("tools", b"code,price,maker\nA,3,Acme\n")
    done = await asyncio.gather(
        *(installation.types.apply(each) for each in (first, second, first, second)),
        return_exceptions=True,
    )
    refused = [each for each in done if isinstance(each, BaseException)]
    assert len(refused) == 2 and all("lose the values of maker" in str(each) for each in refused)
    assert "maker" in await columns(installation, "tools")
    assert (await installation.types.in_force())["tools"] == second


async def test_processes_that_apply_two_types_at_once_take_turns(
    installation: Installation, tmp_path: Path
) -> None:
    url = installation.database.engine.url.render_as_string(hide_password=False)

    async def applied(name: str) -> str:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        text = FIRST.replace("name: tools", f"name: {name}")
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        applying = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "workers.shared.cli", "type", "apply", "--folder", folder),
            env={**os.environ, "DATABASE_URL": url},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await applying.communicate()
        assert applying.returncode == 0, said
        return said.decode()

    # Each makes the schema, unless the other one has.
    for said in await asyncio.gather(applied("left"), applied("right")):
        assert "is in force now" in said
    assert set(await installation.types.in_force()) == {"left", "right"}
    tables = ("left", "right", "staged_left", "staged_right")
    assert await installation.database_tables(*tables) == {*tables}
    for said in await asyncio.gather(applied("left"), applied("right")):
        assert "CREATE" not in said


async def test_a_table_belongs_to_one_type_and_stays_its_table(
    installation: Installation,
) -> None:
    await installation.types.apply(tools(FIRST))
    with pytest.raises(RuleViolation, match="rows are in tools, and would not be seen"):
        await installation.types.apply(tools(FIRST + "table: devices\n"))
    other = FIRST.replace("name: tools", "name: devices\ntable: tools")
    with pytest.raises(RuleViolation, match="is that of the type tools"):
        await installation.types.apply(tools(other))
    with pytest.raises(RuleViolation, match="begin with 'staged_'"):
        tools(FIRST.replace("name: tools", "name: staged_tools"))


async def test_types_of_docflows_own_are_left_alone(installation: Installation) -> None:
    own = tools(FIRST.replace("name: tools", "name: equipment"))
    with pytest.raises(RuleViolation, match="docflow's own"):
        await installation.types.apply(own)
    with pytest.raises(RuleViolation, match="persons is a table of docflow's own"):
        await installation.types.plan(tools(FIRST.replace("name: tools", "name: persons")))


def test_the_text_of_a_type_is_the_same_type() -> None:
    assert read_type(type_text(tools(FIRST)), "again.yaml") == tools(FIRST)
