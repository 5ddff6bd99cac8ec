"""Types change while rows are stored and runs are open: what is kept, shown, refused and parked."""

from decimal import Decimal

import pytest
from temporalio.exceptions import ApplicationError

from adapters.types.files import read_type
from tests.types.conftest import Installation
from workflows.imports.runs import Counts
from workflows.shared.declared_fields import DeclaredTarget
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import TABLE_CHANGED, RuleViolation

HEAD = "name: tools\ntitle: Tools\nkey: [code]\nfields:\n  code: {kind: code, required: true}\n"


def tools(fields: str, more: str = "") -> DeclaredType:
    return read_type(f"{HEAD}  {fields}\n{more}", "tools.yaml")


async def stored(installation: Installation, declared: DeclaredType, rows: str) -> None:
    """Put a type in force and import rows of it."""
    await installation.types.apply(declared)
    done = await installation.imported("tools", rows.encode())
    assert done.counts.rejected == 0, done


async def test_renamed_fields_keep_their_values(installation: Installation) -> None:
    await stored(installation, tools("price: {kind: integer}"), "code,price\nA,5\nB,7\n")
    text = HEAD.replace("[code]", "[number]").replace("  code: {", "  number: {was: code, ")
    renamed = read_type(text + "  cost: {was: price, kind: decimal}\n", "tools.yaml")
    [plan] = await installation.types.apply(renamed)
    assert plan.losses == []
    assert [change.sql for change in plan.changes[:2]] == [
        "ALTER TABLE docflow_types.tools RENAME COLUMN code TO number",
        "ALTER TABLE docflow_types.tools RENAME COLUMN price TO cost",
    ]
    assert await installation.rows(renamed, "number", "cost") == [
        ("A", Decimal(5)),
        ("B", Decimal(7)),
    ]
    done = await installation.imported("tools", b"number,cost\nA,5\nB,8\n", task_id="T2")
    assert done.counts == Counts(unchanged=1, updated=1)
    # An old name means nothing once its column is renamed.
    assert not (await installation.types.apply(renamed))[0].changes


async def test_a_rename_of_an_unknown_column_is_refused(installation: Installation) -> None:
    renamed = tools("cost: {was: pric}")
    await installation.types.plan(renamed)
    await installation.types.apply(tools("price: {}"))
    said = r"tools\.yaml: line 6: cost was 'pric', and tools has no such .* did you mean 'price'\?"
    with pytest.raises(RuleViolation, match=said):
        await installation.types.plan(renamed)


async def test_an_empty_column_is_dropped_without_a_flag(installation: Installation) -> None:
    await stored(installation, tools("price: {}"), "code,price\nA,\n")
    [plan] = await installation.types.apply(tools("maker: {}"))
    assert plan.losses == []
    assert "ALTER TABLE docflow_types.tools DROP COLUMN price" in [c.sql for c in plan.changes]


async def test_a_rename_is_refused_if_both_columns_exist(installation: Installation) -> None:
    await installation.types.apply(tools("price: {}\n  cost: {}"))
    with pytest.raises(RuleViolation, match="tools has the columns price and cost"):
        await installation.types.plan(tools("cost: {was: price}"))


CASTS = [
    ("text", "integer", "5 +07", "-0.5 x 1,000"),
    ("text", "decimal", "5 -1.25", "1,5 x"),
    ("text", "date", "2024-02-29 2025-01-31", "2023-02-29 04.03.2025 2025-13-01"),
    ("text", "boolean", "yes FALSE", "x maybe"),
    ("text", "time", "10:30 23:59:01", "24:00 noon"),
    ("text", "timestamp", "2025-03-04T10:30", "2025-02-30T10:30 2025-03-04"),
    ("decimal", "integer", "5 7.00", "1.5"),
    ("date", "timestamp", "2025-03-04", ""),
    ("integer", "text", "5", ""),
    ("date", "integer", "", "2025-03-04"),
    ("text", "duration", "", "90"),
]


@pytest.mark.parametrize(("old", "new", "fit", "unfit"), CASTS)
async def test_a_new_kind_keeps_the_values_that_fit(
    installation: Installation, old: str, new: str, fit: str, unfit: str
) -> None:
    values = [*fit.split(), *unfit.split()]
    rows = "code;value\n" + "".join(f"{n};{value}\n" for n, value in enumerate(values))
    await stored(installation, tools(f"value: {{kind: {old}}}"), rows)
    wanted = tools(f"value: {{kind: {new}}}")
    [plan] = await installation.types.plan(wanted)
    if unfit:
        lost = len(unfit.split())
        assert f"{lost} of {len(values)} values of value, which do not fit" in plan.losses[0]
        with pytest.raises(RuleViolation, match="--allow-loss"):
            await installation.types.apply(wanted)
    await installation.types.apply(wanted, allow_loss=bool(unfit))
    found = [value for (value,) in await installation.rows(wanted, "value")]
    assert [value is not None for value in found] == [value in fit.split() for value in values]


MEANINGS: list[tuple[str, str, str, str | None]] = [
    (
        "kind: money, currency: EUR",
        "kind: money, currency: USD",
        "10",
        "meaning of 2 stored",
    ),
    ("kind: integer", "kind: duration", "10", "the meaning of 2 stored values"),
    ("units: [kg], kind: decimal", "units: [t], kind: decimal", "10", "meaning of 2 stored"),
    ("units: [kg], kind: decimal", "units: [kg, t], kind: decimal", "10", None),
    ("kind: decimal", "units: [t], kind: decimal", "10", None),
    (
        "kind: decimal",
        "kind: decimal, units: ['%']",
        "10",
        "the meaning of 2 stored values of value",
    ),
    ("kind: decimal, units: ['%']", "kind: decimal", "10", "the meaning of 2 stored values"),
    ("kind: decimal, units: ['%']", "kind: decimal, units: [percent, '%']", "10", None),
    ("kind: decimal, units: ['%']", "kind: decimal, units: [Prozent]", "10", None),
    ("kind: duration, units: [h]", "kind: duration, units: [min]", "1:10:00", None),
    ("kind: money", "kind: money, currency: EUR", "10", None),
    (
        "kind: money, currency: EUR, units: [t]",
        "kind: money, currency: USD, units: [kg]",
        "10",
        "meaning of 2 stored",
    ),
    ("kind: choice, choices: [a, b]", "kind: choice, choices: [b]", "a", "2 of 2 stored"),
    ("kind: choice, choices: [a, b]", "kind: choice, choices: [a]", "a", None),
    ("kind: text", "kind: choice, choices: [b]", "a", "'a' is not one of b"),
    ("kind: integer", "kind: integer, minimum: 11", "10", "'10' is less than 11"),
    ("kind: duration", "kind: duration, maximum: 60", "1:10:00", "is more than 0:01:00"),
    ("kind: date", "kind: date, minimum: 2020-01-01", "2019-01-01", "is less than"),
    ("kind: text", "kind: text, pattern: '[a-z]+'", "a1", "does not match the pattern"),
    ("kind: text", "kind: text, pattern: '[a-z]+[0-9]'", "a1", None),
    ("kind: text", "kind: text, max_length: 1", "a1", "2 of 2 stored"),
    ("kind: boolean", "kind: boolean, title: Is it", "yes", None),
    ("kind: text", "kind: text, required: true", "", "2 stored rows without value"),
    ("kind: text", "kind: text, default: none", "a", None),
    (
        "kind: timestamp, zone: Europe/Berlin",
        "kind: timestamp, zone: Asia/Tokyo",
        "2025-10-26 02:30+01:00",
        None,
    ),
]


@pytest.mark.parametrize(("old", "new", "value", "loses"), MEANINGS)
async def test_a_changed_meaning_is_planned(
    installation: Installation, old: str, new: str, value: str, loses: str | None
) -> None:
    rows = f"code;value\nA;{value}\nB;{value}\n"
    await stored(installation, tools(f"value: {{{old}}}"), rows)
    wanted = tools(f"value: {{{new}}}")
    [plan] = await installation.types.plan(wanted)
    assert not plan.changes
    assert bool(plan.meanings) is ("title" not in new)
    if loses is None:
        assert not plan.losses
        await installation.types.apply(wanted)
        return
    assert loses in plan.losses[0]
    with pytest.raises(RuleViolation, match="this would lose"):
        await installation.types.apply(wanted)
    await installation.types.apply(wanted, allow_loss=True)


async def test_rows_that_a_new_target_leaves_behind_are_counted(
    installation: Installation,
) -> None:
    await stored(installation, tools("value: {}"), "code;value\nA;1\nB;2\n")
    wanted = tools("value: {}").model_copy(update={"target": DeclaredTarget(file="csv")})
    [plan] = await installation.types.plan(wanted)
    assert [each.says for each in plan.meanings] == [
        "target: none becomes file csv",
        "2 stored rows stay in docflow_types.tools; no import changes them",
    ]


async def test_new_rules_and_periods_are_tried_on_stored_rows(installation: Installation) -> None:
    dates = "start: {kind: date}\n  end: {kind: date}"
    rows = "code,start,end\nA,2025-03-04,2025-03-05\nB,2025-03-04,2025-03-01\nC,,\n"
    await stored(installation, tools(dates), rows)
    ruled = tools(dates, "period: [start, end]\nrules:\n- any_of: [start, end]\n")
    [plan] = await installation.types.plan(ruled)
    assert plan.losses == ["1 stored row that break it"] * 2
    strategy = tools(dates, "strategy: replace\n")
    [plan] = await installation.types.plan(strategy)
    assert [each.says for each in plan.meanings] == ["strategy: merge becomes replace"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (tools("cost: {was: price}"), r"column .*price.* does not exist\. It was dropped"),
        (tools("maker: {}"), r"column .*price.* does not exist\. It was dropped"),
        (None, r'relation "docflow_types.*tools" does not exist'),
    ],
    ids=["renamed", "dropped", "table dropped"],
)
@pytest.mark.parametrize("rows", [2, 1_200])
async def test_an_open_run_parks_if_its_column_went(
    installation: Installation, changed: DeclaredType | None, said: str, rows: int
) -> None:
    first = tools("price: {}")
    await installation.types.apply(first)
    if changed is None:
        await installation.types.remove("tools", drop_table=True)
    else:
        await installation.types.apply(changed, allow_loss=True)
    content = "code,price\n" + "".join(f"A-{n},x\n" for n in range(rows))
    with pytest.raises(ApplicationError, match=said) as parked:
        await installation.imported("tools", content.encode(), type_digest=first.digest)
    assert parked.value.type == TABLE_CHANGED
    if changed is not None:
        content = content.replace("price", next(n for n in changed.fields if n != "code"))
        done = await installation.imported(
            "tools", content.encode(), type_digest=changed.digest, task_id="T2"
        )
        assert done.counts == Counts(created=rows)


@pytest.mark.parametrize("kind", ["money", "date", "timestamp", "time", "boolean", "integer"])
@pytest.mark.parametrize(("rows", "strategy"), [(2, "merge"), (1_200, "merge"), (2, "replace")])
async def test_an_open_run_parks_if_its_column_has_another_kind(
    installation: Installation, kind: str, rows: int, strategy: str
) -> None:
    first = tools("price: {}")
    await installation.types.apply(first)
    await installation.types.apply(tools(f"price: {{kind: {kind}}}"))
    content = "code,price\n" + "".join(f"A-{n},x\n" for n in range(rows))
    given = {"type_digest": first.digest, "strategy": strategy}
    with pytest.raises(ApplicationError, match=r"has another kind.*, and retry$") as parked:
        await installation.imported("tools", content.encode(), **given)
    assert parked.value.type == TABLE_CHANGED
    await installation.types.apply(first)
    again = await installation.imported("tools", content.encode(), **given)
    assert again.counts == Counts(created=rows)


@pytest.mark.parametrize("strategy", ["merge", "replace", "append"])
async def test_an_open_run_goes_on_if_a_field_is_widened(
    installation: Installation, strategy: str
) -> None:
    first, then = tools("price: {kind: money}"), tools("price: {}")
    await installation.types.apply(first)
    await installation.types.apply(then)
    given = {"strategy": strategy, "type_digest": first.digest, "idempotency_key": "K"}
    done = await installation.imported("tools", b"code,price\nA,5\nB,\n", **given)
    assert done.counts == Counts(created=2)
    assert [row[0] for row in await installation.rows(then, "code")] == ["A", "B"]
    assert [float(row[0] or 0) for row in await installation.rows(then, "price")] == [5, 0]


async def test_a_run_parks_if_the_view_of_a_reference_went(installation: Installation) -> None:
    visits = tools("site: {kind: reference, table: sites, row_key: id, label: name}")
    for sql, said in (
        ("SELECT 1", r"line \d+: site: there is no table or view sites; make it"),
        ("CREATE VIEW sites AS SELECT 7 AS id, 'N' AS nam", r"has no column name; .*'nam'"),
        ("ALTER VIEW sites RENAME COLUMN id TO ids", r"has no column id"),
    ):
        await installation.run_sql(sql)
        with pytest.raises(RuleViolation, match=said):
            await installation.types.plan(visits)
    await installation.run_sql("DROP VIEW sites")
    await installation.run_sql("CREATE VIEW sites AS SELECT 7 AS id, 'N' AS name")
    await installation.types.apply(visits)
    await installation.run_sql("DROP VIEW sites")
    with pytest.raises(ApplicationError, match=r'relation "public.sites" does not exist'):
        await installation.imported("tools", b"code,site\nA,N\n")


@pytest.mark.parametrize("table", ["equipment", "public.type_versions", "docflow_progress"])
async def test_a_reference_to_a_table_of_docflow_is_refused(
    installation: Installation, table: str
) -> None:
    visits = tools(f"site: {{kind: reference, table: {table}, row_key: id}}")
    said = rf"tools\.yaml: line \d+: site: {table} is a table of docflow's own; name a table"
    with pytest.raises(RuleViolation, match=said):
        await installation.types.plan(visits)


async def test_a_rename_is_refused_if_another_type_needs_the_name(
    installation: Installation,
) -> None:
    await installation.types.apply(tools("price: {}"))
    table = "{kind: reference, table: docflow_types.tools, row_key: code, label: price}"
    orders = HEAD.replace("tools", "orders") + f"  tool: {table}\n"
    await installation.types.apply(read_type(orders, "orders.yaml"))
    with pytest.raises(RuleViolation, match=r"orders: tool: docflow_types\.tools has no column"):
        await installation.types.plan(tools("cost: {was: price}"))


async def test_a_folder_is_put_in_force_as_one(installation: Installation) -> None:
    await stored(installation, tools("price: {}"), "code,price\nA,x\n")
    parts = read_type(HEAD.replace("tools", "parts"), "parts.yaml")
    with pytest.raises(RuleViolation, match="tools: this would lose"):
        await installation.types.apply(parts, tools("price: {kind: integer}"))
    assert set(await installation.types.in_force()) == {"tools"}
    assert not await installation.database_tables("parts")


async def test_a_removed_type_takes_no_messages_and_keeps_rows(installation: Installation) -> None:
    first = tools("price: {}")
    await stored(installation, first, "code,price\nA,x\n")
    orders = HEAD.replace("tools", "orders") + "  tool: {kind: reference, to: tools}\n"
    await installation.types.apply(read_type(orders, "orders.yaml"))
    with pytest.raises(RuleViolation, match="orders: tool refers to tools; remove orders first"):
        await installation.types.remove("tools")
    await installation.types.remove("orders")
    with pytest.raises(RuleViolation, match=r"has 1 row, which would be lost.*--allow-loss"):
        await installation.types.remove("tools", drop_table=True)
    removed = await installation.types.remove("tools")
    assert (removed.rows, removed.dropped) == (1, False)
    with pytest.raises(RuleViolation, match="no declared type tools; there are no declared types"):
        await installation.types.remove("tools")
    with pytest.raises(ApplicationError, match="there is no type tools"):
        await installation.imported("tools", b"code,price\nB,x\n", task_id="T2")
    # A run that is open goes on.
    done = await installation.imported(
        "tools", b"code,price\nB,x\n", task_id="T3", type_digest=first.digest
    )
    assert done.counts == Counts(created=1)
    # Its rows are those of the version that was removed.
    [plan] = await installation.types.plan(tools("price: {max_length: 1, pattern: y}"))
    assert plan.before is None
    assert plan.losses == ["2 of 2 stored values of price: 'x' does not match the pattern y"]
    await installation.types.apply(first)
    removed = await installation.types.remove("tools", drop_table=True, allow_loss=True)
    assert (removed.rows, removed.dropped) == (2, True)
    assert not await installation.database_tables("tools", "staged_tools")
