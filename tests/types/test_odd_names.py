"""Names that mean something in SQL, or to docflow itself, are names like any other."""

import pytest

from adapters.database.foreign import ForeignDatabases, described
from adapters.database.foreign_rows import RowWriter
from adapters.types.files import read_type
from tests.types.conftest import Installation
from workflows.imports.runs import Counts

TYPE = """
name: select
title: Odd names
scope: [project_id, now]
key: [place, user]
fields:
  place: {kind: code, required: true}
  user: {kind: integer, required: true}
  order: {kind: decimal}
  task: {}
  task_id: {}
  load: {kind: boolean}
  count: {kind: date}
  written: {kind: time}
  excluded: {kind: money}
  line: {}
  key_place: {kind: code}
  sent_order: {}
"""


def rows(count: int) -> bytes:
    head = "place,user,order,task,task id,load,count,written,excluded,line,key place,sent order\n"
    lines = (f"P{n},{n},1.5,t,i,yes,2025-03-04,10:30,5,l,K-{n},s\n" for n in range(1, count + 1))
    return (head + "".join(lines)).encode()


@pytest.mark.parametrize("count", [3, 1_500])
async def test_names_of_sql_are_fields(installation: Installation, count: int) -> None:
    declared = read_type(TYPE, "select.yaml")
    await installation.types.apply(declared)
    scope = {"now": "today"}

    async def load(task: str, number: int, **fields: str) -> Counts:
        done = await installation.imported(
            "select", rows(number), task_id=task, scope=scope, **fields
        )
        return done.counts

    assert await load("T1", count) == Counts(created=count)
    assert await load("T2", count) == Counts(unchanged=count)
    assert await load("T3", count + 1, strategy="update_only") == Counts(
        unchanged=count, rejected=1
    )
    assert await load("T4", count + 1, strategy="create_only") == Counts(created=1, unchanged=count)
    assert await load("T5", 2, strategy="replace") == Counts(deleted=count - 1, unchanged=2)
    appended = await load("T6", 3, strategy="append", idempotency_key="K1")
    assert appended == Counts(created=1, rejected=2)


async def test_columns_of_odd_names_refuse_rows_by_name(installation: Installation) -> None:
    names = ("state", "s", "t", "place", "detail", "c0", "e", "we'ird$docflow${}", "a:b")
    columns = ", ".join(f'"{name}" int CHECK ("{name}" > 0)' for name in names)
    rows = [[f"bad {name}", *(-1 if other == name else 1 for other in names)] for name in names] + [
        ["good", *(1 for _ in names)]
    ]
    async with (
        ForeignDatabases(installation.database) as databases,
        databases.transaction(None, dry=True) as connection,
    ):
        await connection.exec_driver_sql(f"CREATE TABLE odd (key text PRIMARY KEY, {columns})")
        table = await described(connection, "public", "odd")
        writer = RowWriter(connection, table, ["key"], ["key", *names], "merge")
        done = await writer.write(rows)
    assert [each.column for each in done.refused] == [*names]
    assert done.created == 1
