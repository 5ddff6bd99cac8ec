"""Rows of declared types go into tables of the teams that declared them."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from sqlalchemy import func, select
from temporalio.exceptions import ApplicationError

from activities.imports.store import SqlImportStore
from activities.imports.tables import spec_of
from activities.imports.taken_back import taken_back
from activities.imports.views import SqlImportedRows
from adapters.database.foreign import ForeignDatabases, rows_of
from adapters.database.foreign_rows import Image, unpack_images
from adapters.database.models.types import target_images
from adapters.ports.errors import Denied
from adapters.types.files import read_type
from adapters.types.store import SqlDeclaredTypes
from adapters.types.tables import STAGED, register_table
from adapters.types.targets import TargetTables
from tests.support.imports.activities import Killed, message_of
from tests.support.webhook import receiving
from tests.types.conftest import TOOLS, Erp, Installation, tools
from tests.types.dying_writer import CHUNKS, ROWS, imported, stock
from tests.types.dying_writer import killed as dies
from workers.imports.rehearsal import rehearsed
from workflows.imports.runs import Closing, Counts, ImportState, TaskKey
from workflows.shared.errors import PERMANENT, TABLE_CHANGED, UNAVAILABLE, RuleViolation

FIRST = (
    b"tool_no,name,price,amount,bought,state\n"
    b"T-1,Wrench,149.90,2,2024-03-01,used\nT-2,Stand,38,1,,new\n"
)


async def test_rows_go_into_a_table_of_a_team(erp: Erp) -> None:
    (planned,) = await erp.installation.types.plan(tools())
    assert [each.at for each in planned.changes] == [None, None, "the database erp"]
    assert 'CREATE TABLE IF NOT EXISTS "stock".docflow_progress' in planned.changes[-1].sql
    assert await erp.installation.types.apply(tools()) == [planned]
    (again,) = await erp.installation.types.plan(tools())
    assert again.changes == []
    assert await erp.imported(FIRST) == Counts(created=2)
    assert await erp.imported(FIRST.replace(b"38", b"39"), "T2") == Counts(updated=1, unchanged=1)
    query = 'SELECT article_no, price, amount, bought, "State"::text, label FROM stock."Tools"'
    assert sorted(await erp.sql(query)) == [
        ("T-1", Decimal("149.90"), 2, date(2024, 3, 1), "used", "T-1 Wrench"),
        ("T-2", Decimal("39.00"), 1, None, "new", "T-2 Stand"),
    ]
    assert await erp.sql("SELECT run FROM stock.docflow_progress") == []


REFUSED = {
    "T-3,Wrench,1,1,,": ("name", "Wrench", "duplicate key"),
    "T-4,a,-1,1,,": ("price", "-1", "Tools_price_check"),
    "T-5,b,1.239,1,,": ("price", "1.239", "'1.239' cannot be kept whole as numeric(10,2)"),
    "T-6,c,1,1.5,,": ("amount", "1.5", "'1.5' cannot be kept whole as integer"),
    "T-700000000,d,1,1,,": ("tool_no", "T-700000000", "whole as character varying(8)"),
    "T-8,e,1,1,,lost": ("state", "lost", "invalid input value for enum"),
    "T-9,Bomb,1,1,,": (None, None, "no bombs here"),
    "T-10,Ghost,1,1,,": (None, None, "the table did not take the row"),
    "T-11,f,999999999,1,,": ("price", "999999999", "numeric field overflow"),
    "T-13,g,5,6,,": (None, None, "(columns amount, price)"),
    "T-14,h,1,,,": ("amount", None, "null value in column"),
    "T-15,i,1,9,,": ("amount", "9", "(Key (amount)=(9) is not present"),
}
"""Row to the field and the value that its problem names, and to a part of the reason."""


async def test_a_default_is_for_new_rows_of_a_file_without_the_column(erp: Erp) -> None:
    text = TOOLS.replace("state: {", "state: {default: used, ").replace(
        "price: {kind: money}", "price: {kind: money, default: '7.50'}"
    )
    await erp.installation.types.apply(tools(text))
    await erp.imported(b"tool_no,name,price,state\nT-1,Wrench,5,new\n")
    # One row is refused, so that the others go in after their server has tried each.
    await erp.imported(b"tool_no,name,amount\nT-1,Spanner,1\nT-2,Bomb,1\nT-3,Hoist,1\n", "T2")
    found = await erp.sql('SELECT article_no, price, "State" FROM stock."Tools" ORDER BY 1')
    assert found == [("T-1", Decimal(5), "new"), ("T-3", Decimal("7.50"), "used")]


async def test_rows_that_their_table_refuses_are_reported(erp: Erp) -> None:
    await erp.sql(
        "CREATE TABLE stock.amounts AS SELECT n FROM generate_series(1, 8) n;"
        "ALTER TABLE stock.amounts ADD PRIMARY KEY (n);"
        'ALTER TABLE stock."Tools" ADD FOREIGN KEY (amount) REFERENCES stock.amounts,'
        " ALTER amount SET NOT NULL, ADD CHECK (price <> 5 OR amount <> 6)"
    )
    await erp.installation.types.apply(tools())
    await erp.imported(FIRST)
    head = "tool_no,name,price,amount,bought,state"
    rows = [*REFUSED, "T-12,Good,1,1,,new", "T-1,Wrench,150,2,2024-03-01,used"]
    content = "\n".join((head, *rows, "")).encode()
    done = await erp.installation.imported("tools", content, task_id="T2", max_rejected_share=1)
    assert done.counts == Counts(created=1, updated=1, rejected=len(REFUSED))
    pages = erp.installation.store.rejects(TaskKey("P1", "T2"))
    said = {row.line: row.problems[0] async for page in pages for row in page}
    for line, (column, value, reason) in enumerate(REFUSED.values(), 2):
        assert (said[line].column, said[line].value) == (column, value), said[line]
        assert reason in said[line].reason, said[line]
    assert [row[0] for row in await erp.tools()] == ["T-1", "T-12", "T-2"]


async def test_a_later_row_may_be_what_an_earlier_one_needs(erp: Erp) -> None:
    await erp.sql('ALTER TABLE stock."Tools" ADD part_of text REFERENCES stock."Tools"')
    declared = tools(TOOLS.replace("fields:", "fields:\n  part_of: {kind: code}"))
    await erp.installation.types.apply(declared)
    chain = ["T-1,Bit,1,T-2", "T-2,Drill,1,T-5", "T-5,Box,1,T-6", "T-6,Case,1,"]
    missing = ["T-4,Bit 2,1,T-9", "T-7,Bit 3,1,T-4"]
    circle = ["T-10,Left,1,T-11", "T-11,Right,1,T-10"]
    for task, rows, counts in (
        ("T1", [*circle, "T-3,Odd,-1,"], Counts(created=2, rejected=1)),
        ("T2", [*chain, "T-3,Odd,-1,", *missing], Counts(created=4, rejected=3)),
    ):
        content = "\n".join(("tool_no,name,price,part_of", *rows, "")).encode()
        assert await erp.imported(content, task, max_rejected_share=1) == counts


@pytest.mark.parametrize(
    ("strategy", "counts", "left"),
    [
        ("merge", Counts(created=1, updated=1), ["T-1", "T-2", "T-3"]),
        ("create_only", Counts(created=1, unchanged=1), ["T-1", "T-2", "T-3"]),
        ("update_only", Counts(updated=1, rejected=1), ["T-1", "T-2"]),
        ("append", Counts(created=1, rejected=1), ["T-1", "T-2", "T-3"]),
        ("replace", Counts(created=1, updated=1, deleted=1), ["T-2", "T-3"]),
    ],
)
async def test_strategies_act_as_in_docflows_own_tables(
    erp: Erp, strategy: str, counts: Counts, left: list[str]
) -> None:
    await erp.sql("ALTER TABLE stock.\"Tools\" ADD site text NOT NULL DEFAULT 'other'")
    await erp.sql("INSERT INTO stock.\"Tools\" (article_no, name) VALUES ('T-0', 'Other')")
    await erp.sql('ALTER TABLE stock."Tools" DROP CONSTRAINT "Tools_pkey"')
    await erp.sql('CREATE UNIQUE INDEX ON stock."Tools" (site, article_no)')
    await erp.installation.types.apply(tools(TOOLS.replace('project_id: "-"', "project_id: site")))
    await erp.imported(FIRST)
    given = {"idempotency_key": "K"} if strategy == "append" else {}
    rows = b"tool_no,name,price\nT-2,Stand,40\nT-3,Hoist,1\n"
    assert await erp.imported(rows, "T2", strategy=strategy, **given) == counts
    assert [row[0] for row in await erp.tools()] == ["T-0", *left]


async def test_replace_needs_a_scope_with_a_column(erp: Erp) -> None:
    with pytest.raises(RuleViolation, match="'replace' would remove every row"):
        tools(TOOLS.replace("key:", "strategy: replace\nkey:"))
    await erp.installation.types.apply(tools())
    await erp.imported(FIRST)
    with pytest.raises(ApplicationError, match="no scope with a column there"):
        await erp.imported(FIRST[:60], "T2", strategy="replace")
    assert len(await erp.tools()) == 2


async def test_replace_removes_nothing_that_their_table_holds(erp: Erp) -> None:
    await erp.sql('ALTER TABLE stock."Tools" ADD site text')
    await erp.sql('CREATE UNIQUE INDEX ON stock."Tools" (site, article_no)')
    await erp.sql('CREATE TABLE stock.loans (tool text REFERENCES stock."Tools")')
    await erp.installation.types.apply(tools(TOOLS.replace('project_id: "-"', "project_id: site")))
    await erp.imported(FIRST)
    await erp.sql("INSERT INTO stock.loans VALUES ('T-1')")
    with pytest.raises(ApplicationError, match=r"cannot remove .* nothing was written"):
        await erp.imported(b"tool_no,name\nT-3,Hoist\n", "T2", strategy="replace")
    assert [row[0] for row in await erp.tools()] == ["T-1", "T-2"]


@pytest.mark.parametrize("strategy", ["merge", "append", "replace"])
async def test_a_kill_between_both_commits_doubles_nothing(
    erp: Erp, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await erp.sql('ALTER TABLE stock."Tools" ADD site text')
    await erp.sql('CREATE UNIQUE INDEX ON stock."Tools" (site, article_no)')
    await erp.installation.types.apply(tools(TOOLS.replace('project_id: "-"', "project_id: site")))
    write = TargetTables.write

    async def killed(*arguments: Any) -> Any:
        await write(*arguments)
        raise Killed

    given = {"strategy": strategy, "idempotency_key": "K"}
    content = FIRST + b"T-3,Odd,-1,,,\n"
    with monkeypatch.context() as patched:
        patched.setattr(TargetTables, "write", killed)
        with pytest.raises(Killed):
            await erp.imported(content, **given)
    assert len(await erp.tools()) == 2
    monkeypatch.setattr(erp.installation.ports, "put", AsyncMock())
    # What others do meanwhile stays: the second attempt writes nothing.
    await erp.sql("UPDATE stock.\"Tools\" SET price = 7 WHERE article_no = 'T-2'")
    assert await erp.imported(content, **given) == Counts(created=2, rejected=1)
    assert [row[2] for row in await erp.tools()] == [Decimal("149.90"), Decimal(7)]
    query = select(target_images.c.run)
    async with erp.installation.database.reading() as connection:
        assert (await connection.execute(query)).scalars().all() == ["import/P1/T1"]
    assert await erp.sql("SELECT run FROM stock.docflow_progress") == []


async def test_what_an_import_changed_is_taken_back_if_it_is_unchanged(
    erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    await erp.sql('ALTER TABLE stock."Tools" ADD site text')
    await erp.sql('CREATE UNIQUE INDEX ON stock."Tools" (site, article_no)')
    declared = tools(TOOLS.replace('project_id: "-"', "project_id: site"))
    await erp.installation.types.apply(declared)
    await erp.imported(FIRST + b"T-3,Hoist,5,1,,\n")
    changes = b"tool_no,name,price\nT-1,Wrench,1\nT-2,Stand,2\nT-4,New,3\nT-5,Newer,4\n"
    done = await erp.imported(changes, "T2", strategy="replace")
    assert done == Counts(created=2, updated=2, deleted=1)
    await erp.sql("UPDATE stock.\"Tools\" SET price = 9 WHERE article_no IN ('T-2', 'T-5')")
    key, database = TaskKey("P1", "T2"), erp.installation.database
    with pytest.raises(RuleViolation, match="is running; end it first"):
        await taken_back(database, erp.targets, key)
    given = message_of("tools", blob_name="in/file", task_id="T2")
    closing = Closing(message=given, state=ImportState.COMPLETED)
    await erp.installation.store.close(closing, "import/P1/T2")
    with monkeypatch.context() as patched:
        # Their transaction is committed, and docflow's is not.
        patched.setattr("activities.imports.taken_back.delete", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            await taken_back(database, erp.targets, key)
    taken = await taken_back(database, erp.targets, key)
    assert (taken.restored, sorted(taken.conflicts)) == (
        3,
        [(("P1", "T-2"), "was changed since"), (("P1", "T-5"), "was changed since")],
    )
    with pytest.raises(RuleViolation, match="has changed nothing"):
        await taken_back(database, erp.targets, key)
    found = {row[0]: row[2] for row in await erp.tools()}
    assert found == {
        "T-1": Decimal("149.90"),
        "T-2": Decimal(9),
        "T-3": Decimal(5),
        "T-5": Decimal(9),
    }


@pytest.mark.parametrize("is_corrected", [False, True])
async def test_rows_of_a_killed_and_cancelled_import_are_taken_back(
    erp: Erp, is_corrected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await erp.installation.types.apply(tools())
    await erp.imported(FIRST, "T0")
    write = TargetTables.write

    async def killed(*arguments: Any) -> Any:
        await write(*arguments)
        raise Killed

    changes = FIRST.replace(b"38", b"39") + b"T-3,Odd,-1,,,\nT-4,New,1,,,\n"
    with monkeypatch.context() as patched:
        patched.setattr(TargetTables, "write", killed)
        with pytest.raises(Killed):
            await erp.imported(changes)
    if is_corrected:
        # Another document: the work begins anew.
        await erp.imported(FIRST.replace(b"38", b"40"))
    given = message_of("tools", blob_name="in/file")
    await erp.installation.store.close(
        Closing(message=given, state=ImportState.CANCELLED), "import/P1/T1"
    )
    key, database = TaskKey("P1", "T1"), erp.installation.database
    assert (await erp.tools())[1:] == [
        ("T-2", "Stand", Decimal(40 if is_corrected else 39)),
        ("T-4", "New", Decimal(1)),
    ]
    with monkeypatch.context() as patched:
        # Their transaction is committed, and docflow's is not.
        patched.setattr("activities.imports.taken_back.delete", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            await taken_back(database, erp.targets, key)
    taken = await taken_back(database, erp.targets, key)
    assert (taken.restored, taken.conflicts) == (2 + is_corrected, [])
    assert await erp.tools() == [
        ("T-1", "Wrench", Decimal("149.90")),
        ("T-2", "Stand", Decimal(38)),
    ]
    assert await erp.sql("SELECT run FROM stock.docflow_progress") == []
    with pytest.raises(RuleViolation, match="has changed nothing"):
        await taken_back(database, erp.targets, key)


@pytest.mark.parametrize(
    ("strategy", "is_killed"), [("merge", False), ("append", False), ("append", True)]
)
async def test_images_of_one_block_at_a_time_are_taken_back(
    erp: Erp, monkeypatch: pytest.MonkeyPatch, strategy: str, is_killed: bool
) -> None:
    write = TargetTables.write

    async def killed(*arguments: Any) -> Any:
        await write(*arguments)
        raise Killed

    await erp.installation.types.apply(tools())
    content = b"tool_no,name\n" + b"".join(b"T-%d,Tool %d\n" % (n, n) for n in range(12_000))
    given = {"strategy": strategy, "idempotency_key": "once"}
    if is_killed:
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(TargetTables, "write", killed)
            await erp.imported(content, **given)
    else:
        assert await erp.imported(content, **given) == Counts(created=12_000)
    closing = Closing(message=message_of("tools", blob_name="in/file"), state=ImportState.CANCELLED)
    await erp.installation.store.close(closing, "import/P1/T1")
    done, unpack, take_back = list[tuple[str, int]](), unpack_images, TargetTables.take_back

    def read(packed: bytes) -> Sequence[Image]:
        images = unpack(packed)
        done.append(("read", len(images)))
        return images

    async def taken(*arguments: Any) -> Any:
        done.append(("taken back", len(arguments[-1])))
        return await take_back(*arguments)

    monkeypatch.setattr("activities.imports.taken_back.unpack_images", read)
    monkeypatch.setattr(TargetTables, "take_back", taken)
    found = await taken_back(erp.installation.database, erp.targets, TaskKey("P1", "T1"))
    assert (found.restored, await erp.tools()) == (12_000, [])
    assert [act for act, _ in done] == ["read", "taken back"] * (len(done) // 2)
    assert max(count for _, count in done) <= 5_000 < sum(count for _, count in done) // 2


async def test_a_column_that_is_gone_is_named_when_rows_are_taken_back(erp: Erp) -> None:
    await erp.installation.types.apply(tools())
    await erp.imported(FIRST)
    closing = Closing(message=message_of("tools", blob_name="in/file"), state=ImportState.COMPLETED)
    await erp.installation.store.close(closing, "import/P1/T1")
    await erp.sql('ALTER TABLE stock."Tools" RENAME price TO cost')
    database, key = erp.installation.database, TaskKey("P1", "T1")
    with pytest.raises(Denied, match=r"has no column price any more.*add it again, and retry"):
        await taken_back(database, erp.targets, key)
    await erp.sql('ALTER TABLE stock."Tools" RENAME cost TO price')
    assert (await taken_back(database, erp.targets, key)).restored == 2


async def test_rows_are_taken_back_together_but_for_those_that_are_refused(
    erp: Erp, monkeypatch: pytest.MonkeyPatch
) -> None:
    await erp.installation.types.apply(tools())
    rows = b"tool_no,name\n" + b"".join(b"T-%d,Tool %d\n" % (n, n) for n in range(3_000))
    await erp.imported(rows)
    await erp.sql('CREATE TABLE stock.used (tool varchar(8) REFERENCES stock."Tools")')
    await erp.sql("INSERT INTO stock.used VALUES ('T-7'), ('T-2900')")
    await erp.sql("UPDATE stock.\"Tools\" SET price = 9 WHERE article_no = 'T-8'")
    await erp.sql("DELETE FROM stock.\"Tools\" WHERE article_no = 'T-9'")
    closing = Closing(message=message_of("tools", blob_name="in/file"), state=ImportState.COMPLETED)
    await erp.installation.store.close(closing, "import/P1/T1")
    asked = AsyncMock(side_effect=rows_of)
    monkeypatch.setattr("adapters.database.foreign_undo.rows_of", asked)
    found = await taken_back(erp.installation.database, erp.targets, TaskKey("P1", "T1"))
    assert found.restored == 2_997
    reasons = {key[0]: reason for key, reason in found.conflicts}
    assert reasons.pop("T-8") == "was changed since"
    assert reasons.keys() == {"T-7", "T-2900"}
    assert all("violates foreign key" in reason for reason in reasons.values())
    assert asked.await_count < 100


UNFIT = {
    "table: stock.Tools": ("table: stock.tulz", "there is no table stock.tulz"),
    'state: "State"': ('state: "Stat"', "has no column Stat for state"),
    "bought: {kind: date}": ("bought: {kind: time}", "bought does not fit"),
    "tool_no: article_no": ("tool_no: label", "their server itself fills it"),
    "price: {kind: money}": (
        "price: {}",
        r"price does not fit stock.Tools.price \(numeric\(10,2\)\): the kinds do not fit; "
        r"numeric\(10,2\) takes integer or sequence or decimal or money or place or code",
    ),
    "key: [tool_no]": ("key: [tool_no, name]", "no unique index"),
    "name: {required: true}": ("nick: {}", "name is NOT NULL without a default"),
    "database: erp": ("database: crm", "DOCFLOW_TYPE_DATABASES has no 'crm'"),
}


@pytest.mark.parametrize("part", UNFIT)
async def test_a_type_that_does_not_fit_its_table_is_refused(erp: Erp, part: str) -> None:
    other, said = UNFIT[part]
    text = TOOLS.replace(part, other)
    if part.startswith("name:"):
        text = text.replace("tool_no: article_no,", "tool_no: article_no, nick: label2,")
        await erp.sql('DROP TRIGGER guard ON stock."Tools"')
        await erp.sql('ALTER TABLE stock."Tools" ADD label2 text')
    with pytest.raises(RuleViolation, match=said):
        await erp.installation.types.apply(tools(text))
    assert await erp.installation.types.in_force() == {}


@pytest.mark.parametrize(
    "table", ["alembic_version", "runs", "docflow_progress", "docflow_types.tools", "events"]
)
async def test_docflows_own_tables_are_no_targets(installation: Installation, table: str) -> None:
    own = HEAD.replace("scope: []", f"scope: []\ntarget: {{table: {table}}}")
    await installation.run_sql("CREATE TABLE docflow_progress (code text PRIMARY KEY)")
    await installation.types.apply(read_type(HEAD, "tools.yaml"))
    with pytest.raises(RuleViolation, match=f"{table} is a table of docflow's own"):
        await installation.types.plan(read_type(own.replace(": tools", ": mine"), "mine.yaml"))


HEAD = (
    "name: tools\ntitle: Tools\nkey: [code]\nscope: []\n"
    "fields:\n  code: {kind: code, required: true}\n"
)


async def test_a_column_of_numbers_takes_plain_codes(erp: Erp) -> None:
    await erp.sql("CREATE TABLE stock.parts (code bigint PRIMARY KEY)")
    target = "target: {database: erp, table: stock.parts}\n"
    await erp.installation.types.apply(read_type(HEAD + target, "tools.yaml"))
    rows = b"code\n9876543210\n0\n7\n007\n1e5\nNaN\nA-1\n"
    done = await erp.installation.imported("tools", rows, max_rejected_share=1)
    assert (done.counts.created, [each.value for each in done.problems]) == (
        3,
        ["007", "1e5", "NaN", "A-1"],
    )


async def test_a_plan_tells_what_defaults_decide(erp: Erp) -> None:
    await erp.sql(
        "ALTER TABLE stock.\"Tools\" ADD site text NOT NULL DEFAULT 'main',"
        " ALTER amount SET NOT NULL, ALTER bought SET NOT NULL"
    )
    await erp.sql('DROP TRIGGER guard ON stock."Tools"')
    (planned,) = await erp.installation.types.plan(tools())
    assert planned.notes == [
        "no field fills stock.Tools.site, which is NOT NULL: new rows get its default",
        "amount may be blank, and stock.Tools.amount is NOT NULL (its default is for files without "
        "the field): rows without a value are refused. Write `required: true` or `default:`",
        "bought may be blank, and stock.Tools.bought is NOT NULL: rows without a value are "
        "refused. Write `required: true` or `default:`",
    ]


async def test_refused_rights_say_who_has_to_run_what(erp: Erp) -> None:
    await erp.sql("CREATE ROLE loader LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA stock TO loader")
    try:
        url = re.sub("//[^@/]*@|//", "//loader:x@", erp.url, count=1)
        databases = ForeignDatabases(erp.installation.database, {"erp": url})
        async with databases:
            types = SqlDeclaredTypes(erp.installation.database, TargetTables(databases))
            await erp.sql("REVOKE USAGE ON LANGUAGE plpgsql FROM PUBLIC")
            with pytest.raises(RuleViolation, match=r"GRANT SELECT, INSERT, UPDATE ON \"stock\""):
                await types.apply(tools())
            with pytest.raises(RuleViolation, match=r"GRANT USAGE ON LANGUAGE plpgsql TO \"loader"):
                await types.apply(tools())
            await erp.sql("GRANT USAGE ON LANGUAGE plpgsql TO PUBLIC")
            await erp.sql('GRANT SELECT, INSERT, UPDATE ON stock."Tools" TO loader')
            with pytest.raises(RuleViolation, match="then apply again") as refused:
                await types.apply(tools())
            await erp.sql(str(refused.value).partition(":\n")[2])
            await types.apply(tools())
            store = SqlImportStore(erp.installation.database, targets=TargetTables(databases))
            erp.installation.store = store
            assert await erp.imported(FIRST) == Counts(created=2)
            await erp.sql('REVOKE INSERT ON stock."Tools" FROM loader')
            with pytest.raises(ApplicationError, match="permission denied for table Tools") as no:
                await erp.imported(FIRST.replace(b"T-1", b"T-9").replace(b"Wr", b"W"), "T2")
            assert no.value.type == PERMANENT
    finally:
        await erp.sql("DROP OWNED BY loader; DROP ROLE loader")


async def test_an_outage_of_their_database_is_waited_for(erp: Erp) -> None:
    await erp.installation.types.apply(tools())
    async with ForeignDatabases(
        erp.installation.database, {"erp": "postgresql://nobody@127.0.0.1:1/none"}
    ) as away:
        erp.installation.store = SqlImportStore(
            erp.installation.database, targets=TargetTables(away)
        )
        with pytest.raises(ApplicationError, match="the database erp is not available") as error:
            await erp.imported(FIRST)
    assert error.value.type == UNAVAILABLE
    assert list(error.value.details) == ["target", 0, "erp"]
    erp.installation.store = SqlImportStore(erp.installation.database, targets=erp.targets)
    assert await erp.imported(FIRST) == Counts(created=2)


CHANGED: Mapping[str, tuple[str, str]] = {
    "a column is gone": ("ALTER TABLE {} DROP COLUMN price", r"stock\.Tools has no column price"),
    "a column is a day": (
        "ALTER TABLE {} DROP COLUMN price, ADD COLUMN price date",
        r"price does not fit stock\.Tools\.price \(date\): the kinds do not fit",
    ),
    "a column is of a type without text": (
        "ALTER TABLE {} DROP COLUMN price, ADD COLUMN price xml",
        r"price does not fit stock\.Tools\.price \(xml\)",
    ),
    "their server fills a column": (
        "ALTER TABLE {} DROP COLUMN price, "
        "ADD COLUMN price numeric GENERATED ALWAYS AS (amount * 2) STORED",
        r"price does not fit stock\.Tools\.price \(numeric\): their server itself fills it",
    ),
    "the table is gone": ("DROP TABLE {}", r"there is no table stock\.Tools"),
    "the side table is gone": (
        "DROP TABLE stock.docflow_progress",
        r"there is no table stock\.docflow_progress",
    ),
}
"""What was changed in a table of a team since the type was applied, and what an import says."""


@pytest.mark.parametrize(("sql", "said"), CHANGED.values(), ids=CHANGED.keys())
async def test_an_import_parks_if_their_table_is_another_one(erp: Erp, sql: str, said: str) -> None:
    await erp.installation.types.apply(tools())
    await erp.sql(sql.format('stock."Tools"'))
    with pytest.raises(ApplicationError, match=said) as error:
        await erp.imported(FIRST)
    assert error.value.type == (PERMANENT if "no table" in said else TABLE_CHANGED)


async def test_a_table_in_docflows_own_database_needs_no_setting(erp: Erp) -> None:
    await erp.installation.run_sql("CREATE SCHEMA yard")
    try:
        await erp.installation.run_sql("CREATE TABLE yard.t (a text PRIMARY KEY, b int)")
        text = (
            "name: yard\ntitle: Yard\nkey: [a]\nscope: []\ntarget: {table: yard.t}\n"
            "fields:\n  a: {kind: code, required: true}\n  b: {kind: integer}\n"
        )
        await erp.installation.types.apply(read_type(text, "yard.yaml"))
        rows = b"a,b\n" + b"".join(b"%d,%d\n" % (n, n) for n in range(12_000))
        for task, counts in (("T1", Counts(created=12_000)), ("T2", Counts(unchanged=12_000))):
            done = await erp.installation.imported("yard", rows, task_id=task)
            assert done.counts == counts
    finally:
        await erp.installation.run_sql("DROP SCHEMA yard CASCADE")


async def test_references_are_looked_up_in_a_table_of_a_team(erp: Erp) -> None:
    await erp.installation.types.apply(tools())
    await erp.imported(FIRST)
    loans = (
        "name: loans\ntitle: Loans\nkey: [number]\nfields:\n"
        "  number: {kind: code, required: true}\n"
        "  tool: {kind: reference, to: tools, unknown: refuse}\n"
    )
    await erp.installation.types.apply(read_type(loans, "loans.yaml"))
    rows = b"number,tool\n1,T-1\n2,T-9\n"
    done = await erp.installation.imported("loans", rows, task_id="T2")
    assert done.counts == Counts(created=1, rejected=1)
    refused = loans.replace("refuse", "create")
    with pytest.raises(RuleViolation, match="are in a table of yours"):
        await erp.installation.types.apply(read_type(refused, "loans.yaml"))


async def test_a_dry_run_asks_their_table_and_writes_nothing(erp: Erp) -> None:
    await erp.installation.types.apply(tools())
    file = erp.installation.ports.folder / "tools.csv"
    file.write_bytes(FIRST + b"T-3,Bomb,1,1,,\n")
    given = message_of("tools", blob_name="in/tools")
    database = erp.installation.database
    async with rehearsed(database, given, file, {"erp": erp.url}) as found:
        assert found.outcome.counts == Counts(created=2, rejected=1), found.parks
    assert await erp.tools() == []
    assert await erp.imported(FIRST) == Counts(created=2)


async def test_rows_of_their_table_are_exported_with_their_kinds(erp: Erp) -> None:
    declared = tools()
    await erp.installation.types.apply(declared)
    await erp.imported(FIRST)
    views = SqlImportedRows(erp.installation.database, erp.targets)
    pages = views.read(spec_of(declared), {"project_id": "P1"})
    assert [row async for page in pages for row in page] == [
        ("T-1", "Wrench", Decimal("149.90"), Decimal(2), date(2024, 3, 1), "used"),
        ("T-2", "Stand", Decimal("38.00"), Decimal(1), None, "new"),
    ]


async def killed(erp: Erp, kind: str, step: str, last: int, hook: str) -> None:
    """Import in a process of its own, until it dies behind a step."""
    url = erp.installation.database.engine.url.render_as_string(hide_password=False)
    assert await dies(url, erp.url, hook, erp.installation.ports.folder, kind, step, last)


STOCK = """
CREATE TABLE stock (
  project_id text, article text, amount int CHECK (amount >= 0), PRIMARY KEY (project_id, article)
);
INSERT INTO stock VALUES ('P1', 'OLD'), ('P2', 'OLD');
CREATE TABLE seen (change text, article text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO seen SELECT TG_OP, coalesce(NEW.article, OLD.article); RETURN NULL;
END $$;
CREATE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON stock FOR EACH ROW EXECUTE FUNCTION see();
"""
"""A table of a team that notes each change."""
OLD = [("P1", "OLD"), ("P2", "OLD")]
KILLS = [
    *(("merge", "write", chunk) for chunk in range(1, CHUNKS + 1)),
    *((kind, "stage", chunk) for kind in ("replace", "append") for chunk in range(1, CHUNKS + 1)),
    *((kind, "write", 1) for kind in ("replace", "append")),
]


@pytest.mark.parametrize(("strategy", "step", "last"), KILLS)
async def test_a_process_killed_at_any_chunk_writes_each_row_once(
    erp: Erp, strategy: str, step: str, last: int
) -> None:
    await erp.sql(STOCK)
    await erp.installation.types.apply(stock(strategy))
    await killed(erp, strategy, step, last, "http://127.0.0.1:1")
    done, _ = await imported(
        erp.installation.store, erp.installation.ports.folder, strategy, "http://127.0.0.1:1"
    )
    refused = CHUNKS if strategy == "merge" else 0
    rows, gone = CHUNKS * ROWS - refused, int(strategy == "replace")
    assert done.counts == Counts(created=rows, rejected=refused, deleted=gone)
    seen = await erp.sql("SELECT change, count(*), count(DISTINCT article) FROM seen GROUP BY 1")
    deleted = [("DELETE", 1, 1)] if gone else []
    assert sorted(seen) == [*deleted, ("INSERT", rows, rows)]
    assert await erp.sql("SELECT count(*) FROM stock") == [(rows + 2 - gone,)]
    assert await erp.sql("SELECT run FROM public.docflow_progress") == []
    images = select(func.count()).select_from(target_images)
    async with erp.installation.database.reading() as connection:
        assert await connection.scalar(images) == (CHUNKS if strategy == "merge" else 1)
    given = message_of("stock", blob_name="in/file")
    closing = Closing(message=given, state=ImportState.COMPLETED)
    await erp.installation.store.close(closing, "import/P1/T1")
    taken = await taken_back(erp.installation.database, erp.targets, TaskKey("P1", "T1"))
    assert (taken.restored, taken.conflicts) == (rows + gone, [])
    assert await erp.sql("SELECT project_id, article FROM stock ORDER BY 1") == OLD


@pytest.mark.parametrize(
    ("step", "last"),
    [
        *(("stage", chunk) for chunk in range(1, CHUNKS + 1)),
        # The document is the first one.
        *(("upload", 2), ("tell", 1), ("hand_over", 1)),
    ],
)
async def test_a_process_killed_at_any_chunk_hands_each_row_over_once(
    erp: Erp, step: str, last: int
) -> None:
    declared = stock("file")
    await erp.installation.types.apply(declared)
    async with receiving() as receiver:
        await killed(erp, "file", step, last, receiver.url)
        done, blobs = await imported(
            erp.installation.store, erp.installation.ports.folder, "file", receiver.url
        )
    assert done.counts == Counts(created=CHUNKS * (ROWS - 1), rejected=CHUNKS)
    path = erp.installation.ports.folder / "accepted"
    await blobs.download("accepted/P1/T1.jsonl", path)
    articles = [json.loads(line)["article"] for line in path.read_text().splitlines()]
    refused = range(ROWS - 1, CHUNKS * ROWS, ROWS)
    assert articles == [f"A-{n}" for n in range(CHUNKS * ROWS) if n not in refused]
    # A second call is the first one again.
    assert len(receiver.requests) == (2 if step == "tell" else 1)
    assert len({(each[1]["webhook-id"], each[2]) for each in receiver.requests}) == 1
    async with erp.installation.database.reading() as connection:
        assert (await connection.execute(STAGED[register_table(declared)].select())).all() == []
