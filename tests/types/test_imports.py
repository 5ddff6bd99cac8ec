"""Messages of declared types become rows of their tables."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import permutations

import pytest
from temporalio.exceptions import ApplicationError

from adapters.types.files import read_type
from tests.support.imports.activities import message_of
from tests.types.conftest import Installation
from workers.imports.rehearsal import rehearsed
from workflows.imports.runs import Counts
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation

PARTS = b"Teilenummer;Benennung;St\xc3\xbcck\nA-1;Rahmen;1\nA-2;Achse;2\n"

Trades = dict[str, DeclaredType]


async def test_a_message_of_a_declared_type_becomes_rows(
    installation: Installation, trades: Trades
) -> None:
    await installation.declare("parts")
    outcome = await installation.imported("parts", PARTS)
    assert outcome.counts == Counts(created=2), outcome
    assert await installation.rows(trades["parts"], "part", "title", "amount") == [
        ("A-1", "Rahmen", 1),
        ("A-2", "Achse", 2),
    ]
    again = await installation.imported("parts", PARTS.replace(b"Achse", b"Welle"), task_id="T2")
    assert again.counts == Counts(updated=1, unchanged=1)


async def test_the_scope_of_a_message_bounds_what_replace_removes(
    installation: Installation, trades: Trades
) -> None:
    await installation.declare("timesheets")
    hours = b"empleado,fecha\n7,2025-03-04\n8,2025-03-04\n"
    for site, task in (("north", "T1"), (" south ", "T2")):
        scope = {"site": site}
        done = await installation.imported("timesheets", hours, task_id=task, scope=scope)
        assert done.counts == Counts(created=2), done
    fewer = hours.replace(b"8,2025-03-04\n", b"")
    done = await installation.imported(
        "timesheets", fewer, task_id="T3", scope={"site": "north"}, strategy="replace"
    )
    assert done.counts == Counts(deleted=1, unchanged=1)
    assert await installation.rows(trades["timesheets"], "site", "employee", "day") == [
        ("north", "7", date(2025, 3, 4)),
        ("south", "7", date(2025, 3, 4)),
        ("south", "8", date(2025, 3, 4)),
    ]


@pytest.mark.parametrize(
    ("scope", "said"),
    [({}, "site is missing"), ({"site": "n", "floor": "1"}, "floor is not known")],
)
async def test_a_scope_that_does_not_fit_parks(
    installation: Installation, scope: dict[str, str], said: str
) -> None:
    await installation.declare("timesheets")
    with pytest.raises(ApplicationError, match=said):
        await installation.imported("timesheets", b"empleado,fecha\n7,2025-03-04\n", scope=scope)


async def test_an_unknown_type_names_those_that_there_are(installation: Installation) -> None:
    await installation.declare("parts")
    with pytest.raises(ApplicationError, match="no type part; did you mean 'parts'"):
        await installation.imported("part", PARTS)


async def test_a_run_keeps_the_version_that_it_began_with(
    installation: Installation, trades: Trades
) -> None:
    await installation.declare("parts")
    old = trades["parts"]
    stricter = old.model_copy(
        update={
            "fields": {
                **old.fields,
                "amount": old.fields["amount"].model_copy(update={"required": True}),
                "weight": old.fields["material"],
            }
        }
    )
    await installation.types.apply(DeclaredType.model_validate(stricter.model_dump()))
    rows = b"part,title\nA-1,Frame\n"
    done = await installation.imported("parts", rows, type_digest=old.digest)
    assert done.counts == Counts(created=1)
    kept = f"The type parts has changed since; this import kept version {old.digest[:12]}."
    assert kept in str(done.note)
    newest = installation.imported("parts", rows, task_id="T2")
    with pytest.raises(ApplicationError, match="amount"):
        await newest


async def test_moments_money_and_truth_values_are_kept_as_such(
    installation: Installation, trades: Trades
) -> None:
    await installation.declare("invoice_lines", "appointments")
    lines = (
        "Rechnung;Position;Netto;Brutto;Stand;Land;bezahlt am\n"
        "DE-0001;1;1.250,00 \u20ac;1.487,50 \u20ac;bezahlt;\u00d6sterreich;04.03.2025\n"
    )
    done = await installation.imported("invoice_lines", lines.encode())
    assert done.counts == Counts(created=1), done
    assert await installation.rows(
        trades["invoice_lines"], "net", "gross", "status", "country", "paid_on"
    ) == [(Decimal("1250"), Decimal("1487.5"), "paid", "AT", date(2025, 3, 4))]
    visits = (
        "rendez-vous;patient;date et heure;t\u00e9l\u00e9phone;premi\u00e8re visite\n"
        "17;Marie Curie;04/03/2025 14:30;+33 1 23 45 67 89;oui\n"
        "18;Jean Perrin;25/03/2025 09:00;01 23 45 67 80;non\n"
    )
    done = await installation.imported("appointments", visits.encode(), task_id="T2")
    assert done.counts == Counts(created=2), done
    assert await installation.rows(trades["appointments"], "at", "phone", "first_visit") == [
        (datetime(2025, 3, 4, 13, 30, tzinfo=UTC), "+33123456789", True),
        (datetime(2025, 3, 25, 8, 0, tzinfo=UTC), "0123456780", False),
    ]


async def test_a_large_table_goes_in_like_a_small_one(installation: Installation) -> None:
    declared = read_type(
        "name: readings\ntitle: Readings\nkey: [meter, day]\nfields:\n"
        "  meter: {kind: code, required: true}\n  day: {kind: date, required: true}\n"
        "  value: {kind: decimal}\n  estimated: {kind: boolean}\n  rank: {kind: place}\n",
        "readings.yaml",
    )
    await installation.types.apply(declared)
    rows = "".join(
        f"M-{meter},2025-01-{day:02},{meter}.{day:02},{'yes' if day % 2 else 'no'},={day}\n"
        for meter in range(1000)
        for day in range(1, 21)
    )
    content = f"meter,day,value,estimated,rank\n{rows}".encode()
    done = await installation.imported("readings", content)
    assert done.counts == Counts(created=20_000)
    assert set(await installation.rows(declared, "rank")) == {(n,) for n in range(1, 21)}
    done = await installation.imported("readings", content, task_id="T2")
    assert done.counts == Counts(unchanged=20_000)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("DE-0001;1;10;5;;;", "Netto|the net amount is higher than the gross amount"),
        ("DE-0001;1;10;12;paid;;", "paid_on|is missing, and status is paid"),
        ("DE-0001;1;10;12;open;04.03.2025;", "Leistung bis|is missing beside service_from"),
        ("DE-0001;1;10;12;open;04.03.2025;01.03.2025", "Leistung bis|is before Leistung von 2025"),
    ],
)
async def test_rules_of_a_row_are_problems_of_it(
    installation: Installation, row: str, said: str
) -> None:
    await installation.declare("invoice_lines")
    header = "Rechnung;Position;Netto;Brutto;Stand;Leistung von;Leistung bis"
    good = "DE-0002;1;10;12;open;;"
    done = await installation.imported("invoice_lines", f"{header}\n{row}\n{good}\n".encode())
    assert (done.counts.created, done.problem_count) == (1, 1), done
    problem = done.problems[0]
    column, reason = said.split("|")
    assert (problem.line, problem.column) == (2, column)
    assert problem.reason.startswith(reason)


async def test_columns_that_mean_no_field_are_kept(
    installation: Installation, trades: Trades
) -> None:
    await installation.declare("invoice_lines")
    rows = b"invoice,line,Colour,Weight\nDE-0001,1,red,3.5\nDE-0001,2,,\n"
    done = await installation.imported("invoice_lines", rows)
    kept = "Columns kept in 'other': 'Colour' (1 value), 'Weight' (1 value)."
    assert (done.counts, done.note) == (Counts(created=2), kept)
    found = await installation.rows(trades["invoice_lines"], "line", "other")
    assert found == [(1, {"Colour": "red", "Weight": "3.5"}), (2, None)]


async def test_columns_that_mean_no_field_are_refused_if_the_type_says_so(
    installation: Installation,
) -> None:
    strict = read_type(
        "name: strict\ntitle: Strict\nkey: [code]\nunmapped: refuse\n"
        "fields: {code: {kind: code, required: true}, amount: {kind: integer}}\n",
        "strict.yaml",
    )
    await installation.types.apply(strict)
    rows = b"code,pieces\nA,3\n"
    with pytest.raises(ApplicationError, match=r"mean no field: 'pieces'\..*--map HEADER=-"):
        await installation.imported("strict", rows)
    done = await installation.imported("strict", rows, task_id="T2", map={"pieces": "amount"})
    assert done.counts == Counts(created=1)
    done = await installation.imported("strict", rows, task_id="T3", map={"pieces": "-"})
    assert done.counts == Counts(unchanged=1)


async def test_a_message_without_a_strategy_has_that_of_its_type(
    installation: Installation, trades: Trades
) -> None:
    await installation.declare("tender_bids")
    bids = "OZ;Leistung;Menge;ME;EP\n1.1;Aushub;10;m3;12,50\n1.2;Kies;4;t;30\n"
    scope = {"tender": "2025-7"}
    done = await installation.imported("tender_bids", bids.encode(), scope=scope)
    assert done.counts == Counts(created=2), done
    fewer = bids.replace("1.2;Kies;4;t;30\n", "")
    done = await installation.imported("tender_bids", fewer.encode(), task_id="T2", scope=scope)
    assert done.counts == Counts(deleted=1, unchanged=1)
    done = await installation.imported(
        "tender_bids", bids.encode(), task_id="T3", scope=scope, strategy="update_only"
    )
    assert (done.counts.rejected, done.counts.unchanged) == (1, 1)


BIDS = "OZ;Leistung;Menge;ME;EP\n{rows}"
OWN_SECTIONS = {
    "a row that lacks its figures is no heading": (
        "1.1;Aushub;10;m3;12\nP1;Pauschale;;;\n12;Kies;4;t;30\n",
        [("1.1", ""), ("12", ""), ("P1", "")],
        0,
    ),
    "rows numbered alike are no headings of each other": (
        "1.1;Aushub;;;\n1.2;Kies;;;\nN7;Sand;4;t;30\n",
        [("1.1", ""), ("1.2", ""), ("N7", "")],
        0,
    ),
    "numbering that starts anew has a heading above it": (
        "A;Erdbau;;;\n1;Aushub;1;m3;2\nB;Beton;;;\n1;Wand;1;m3;2\n",
        [("1", "A Erdbau"), ("1", "B Beton"), ("A", ""), ("B", "")],
        0,
    ),
    "a heading numbered as an earlier one needs no new numbering": (
        "A;Erdbau;;;\n1;Aushub;1;m3;2\nB;Beton;;;\n2;Wand;1;m3;2\n",
        [("1", "A Erdbau"), ("2", "B Beton"), ("A", ""), ("B", "")],
        0,
    ),
    "a last row without figures does not hold the next section": (
        ";ERDBAU;;;\n1.1;Aushub;1;m3;2\n1.2;Kies;;;\n;BETON;;;\n1.1;Wand;1;m3;2\n",
        [("1.1", "BETON"), ("1.1", "ERDBAU"), ("1.2", "ERDBAU")],
        0,
    ),
    "a heading that lacks what rows need is refused and is a heading": (
        "A;Erdbau;;;\n1;Aushub;1;m3;2\nB;Beton;;;\n1;Wand;1;m3;2\n2;Decke;1;m3;\n",
        [("1", "A Erdbau"), ("1", "B Beton")],
        3,
    ),
}
"""Rows, the position and section of those that are stored, and how many are rejected."""


@pytest.mark.parametrize("case", OWN_SECTIONS)
async def test_headings_with_a_code_begin_sections(
    installation: Installation, trades: Trades, case: str
) -> None:
    rows, stored, refused = OWN_SECTIONS[case]
    declared = trades["tender_bids"]
    if refused:
        price = declared.fields["unit_price"].model_copy(update={"required": True})
        fields = {**declared.fields, "unit_price": price}
        declared = declared.model_copy(update={"fields": fields})
        declared = DeclaredType.model_validate(declared.model_dump())
    await installation.types.apply(declared)
    content = BIDS.format(rows=rows).encode()
    given = {"scope": {"tender": "1"}, "max_rejected_share": 1, "strategy": "merge"}
    done = await installation.imported("tender_bids", content, **given)
    assert await installation.rows(declared, "position", "section") == stored
    assert done.counts.rejected == refused


@pytest.mark.parametrize("order", list(permutations(("position", "section", "lot"))))
async def test_a_key_lists_its_fields_in_any_order(
    installation: Installation, order: Sequence[str]
) -> None:
    text = (
        f"name: bills\ntitle: Bills\nscope: []\nkey: [{', '.join(order)}]\nfields:\n"
        "  lot: {kind: code, default: L1}\n  section: {kind: section}\n"
        "  position: {kind: code, required: true}\n  amount: {kind: integer}\n"
    )
    declared = read_type(text, "bills.yaml")
    await installation.types.apply(declared)
    rows = "position,amount,note\n,,Ground works\n1.1,3,\n,,Walls\n1.1,5,\n"
    done = await installation.imported("bills", rows.encode())
    assert done.counts == Counts(created=2), done
    found = await installation.rows(declared, "lot", "position", "section", "amount")
    assert sorted(found) == [("L1", "1.1", "Ground works", 3), ("L1", "1.1", "Walls", 5)]


async def test_a_file_without_a_column_of_the_key_is_refused(installation: Installation) -> None:
    text = "name: lots\ntitle: Lots\nscope: []\nkey: [lot]\nfields:\n"
    text += "  lot: {kind: code, default: L1}\n  amount: {kind: integer}\n"
    await installation.types.apply(read_type(text, "lots.yaml"))
    with pytest.raises(ApplicationError, match=r"lacks the column lot: line 1 has 'amount'"):
        await installation.imported("lots", b"amount,note\n3,a\n")


@pytest.mark.parametrize("key", [("position", "section"), ("section", "position")])
async def test_stored_lines_get_the_sections_of_a_later_file(
    installation: Installation, trades: Trades, key: Sequence[str]
) -> None:
    await installation.types.apply(trades["tender_bids"].model_copy(update={"key": key}))
    given = {"scope": {"tender": "3"}, "strategy": "merge"}
    bare = BIDS.format(rows="1.1;Aushub;10;m3;12,50\n").encode()
    await installation.imported("tender_bids", bare, **given)
    rows = "Titel 1;;;;\n1.1;Aushub;10;m3;12,50\n"
    later = BIDS.format(rows=rows).encode()
    await installation.imported("tender_bids", later, task_id="T2", **given)
    found = await installation.rows(trades["tender_bids"], "position", "section")
    assert [each for each in found if each[0] == "1.1"] == [("1.1", "Titel 1")]


async def test_sections_need_a_key_that_begins_with_a_code(installation: Installation) -> None:
    text = (
        "name: bills\ntitle: Bills\nkey: [name, section]\nfields:\n"
        "  name: {kind: text, required: true}\n  section: {kind: section}\n"
        "  amount: {kind: integer, required: true}\n"
    )
    await installation.types.apply(read_type(text, "bills.yaml"))
    rows = b"name,amount,note\n,,Ground works\nDig,3,\nFill,4,\n,,Walls\nBricks,5,\n"
    with pytest.raises(ApplicationError, match=r"is no code.*kind: code"):
        await installation.imported("bills", rows, strategy="merge")


async def test_a_row_may_refer_to_another_one_of_its_file(
    installation: Installation, trades: Trades
) -> None:
    await installation.declare("parts")
    rows = b"part,title,assembly\nA-1,Frame,Z-9\nB-1,Bolt,A-1\nB-2,Nut,A-9\nZ-9,Crane,\n"
    done = await installation.imported("parts", rows)
    assert (done.counts.created, done.counts.rejected) == (3, 1)
    problem = done.problems[0]
    assert (problem.line, problem.column, problem.value) == (4, "assembly", "A-9")
    assert problem.reason == "is not in parts"
    assert done.report is not None
    found = await installation.rows(trades["parts"], "part", "assembly")
    assert found == [("A-1", "Z-9"), ("B-1", "A-1"), ("Z-9", None)]


SUPPLIERS = (
    "name: suppliers\ntitle: Suppliers\nkey: [number]\n"
    "fields: {number: {kind: code, required: true}, city: {}}\n"
)
ORDERS = (
    "name: orders\ntitle: Orders\nkey: [number]\nfields:\n"
    "  number: {kind: code, required: true}\n"
    "  supplier: {kind: reference, to: suppliers, unknown: UNKNOWN}\n"
)


@pytest.mark.parametrize("unknown", ["ask", "create", "refuse"])
async def test_what_happens_to_a_value_that_is_not_known(
    installation: Installation, unknown: str
) -> None:
    suppliers = read_type(SUPPLIERS, "suppliers.yaml")
    orders = read_type(ORDERS.replace("UNKNOWN", unknown), "orders.yaml")
    await installation.types.apply(suppliers)
    await installation.types.apply(orders)
    await installation.imported("suppliers", b"number,city\nS-1,Ulm\n")
    # Of another project.
    await installation.imported("suppliers", b"number\nS-2\n", task_id="T2", project_id="P2")
    rows = b"number,supplier\n1,S-1\n2,S-2\n3,\n"
    if unknown == "ask":
        with pytest.raises(ApplicationError, match=r"supplier: 'S-2': not in suppliers\. Import"):
            await installation.imported("orders", rows, task_id="T3")
        assert await installation.rows(orders, "number") == []
        await installation.imported("suppliers", b"number\nS-2\n", task_id="T4")
    done = await installation.imported("orders", rows, task_id="T3")
    taken = 2 if unknown == "refuse" else 3
    assert (done.counts.created, done.counts.rejected) == (taken, 3 - taken)
    if unknown == "create":
        assert ("S-2", None) in await installation.rows(suppliers, "number", "city")


@pytest.mark.parametrize(
    ("field", "more", "good", "bad", "said"),
    [
        ("kind: code, pattern: '[A-Z]-[0-9]+'", "", "S-2", "s2", "does not match the pattern"),
        ("kind: code, max_length: 3", "", "S-2", "S-22", "at most 3 are allowed"),
        ("kind: integer, minimum: 5", "", "07", "3", "is less than 5"),
        ("kind: date", "", "2025-03-04", "soon", "not a date"),
        ("kind: choice, choices: [a, b]", "", "a", "c", "is not one of a, b"),
        ("kind: code", "rules: [{any_of: [city, town]}]\n", "", "S-2", "fill in one of city or"),
    ],
)
async def test_rows_are_created_by_the_rules_of_their_type(
    installation: Installation, field: str, more: str, good: str, bad: str, said: str
) -> None:
    text = SUPPLIERS.replace("kind: code", field).replace("city: {}", "city: {}, town: {}")
    suppliers = read_type(text + more, "suppliers.yaml")
    orders = read_type(ORDERS.replace("UNKNOWN", "create"), "orders.yaml")
    await installation.types.apply(suppliers, orders)
    rows = f"number,supplier\n1,{good}\n2,{bad}\n".encode()
    done = await installation.imported("orders", rows, max_rejected_share=1)
    assert (done.counts.created, done.counts.rejected) == (1, 1)
    [problem] = done.problems
    assert "is not in suppliers, and cannot be created there: " in problem.reason
    assert said in problem.reason, problem.reason
    made = [str(key) for (key,) in await installation.rows(suppliers, "number")]
    assert made == ([good.lstrip("0")] if good else [])
    assert await installation.rows(orders, "supplier") == [(made[0] if good else None,)]


async def test_a_reference_may_name_a_row_of_any_table(installation: Installation) -> None:
    await installation.run_sql("CREATE VIEW public.sites AS SELECT 7 AS id, 'North' AS name")
    visits = read_type(
        "name: visits\ntitle: Visits\nkey: [number]\nfields:\n"
        "  number: {kind: code, required: true}\n"
        "  site: {kind: reference, table: public.sites, row_key: id, label: name,"
        " unknown: refuse}\n",
        "visits.yaml",
    )
    await installation.types.apply(visits)
    done = await installation.imported("visits", b"number,site\n1,North\n2,7\n3,South\n")
    assert (done.counts.created, done.counts.rejected) == (2, 1)
    assert await installation.rows(visits, "number", "site") == [("1", "7"), ("2", "7")]


@pytest.mark.parametrize("unknown", ["ask", "refuse"])
async def test_a_label_of_two_rows_names_both_keys(
    installation: Installation, unknown: str
) -> None:
    await installation.run_sql(
        "CREATE VIEW public.sites AS SELECT * FROM (VALUES (7, 'North'), (8, 'North'),"
        " (9, 'South'), (9, 'South'), (NULL, 'South')) AS sites (id, name)"
    )
    visits = read_type(
        "name: visits\ntitle: Visits\nkey: [number]\nfields:\n"
        "  number: {kind: code, required: true}\n"
        f"  site: {{kind: reference, table: public.sites, row_key: id, label: name,"
        f" unknown: {unknown}}}\n",
        "visits.yaml",
    )
    await installation.types.apply(visits)
    rows = b"number,site\n1,North\n2,South\n3,7\n"
    said = "means 2 rows of public.sites, whose id is 7 and 8; write id in its place"
    if unknown == "ask":
        with pytest.raises(ApplicationError, match=f"site: 'North' {said}"):
            await installation.imported("visits", rows)
        return
    done = await installation.imported("visits", rows)
    assert [problem.reason for problem in done.problems] == [said]
    assert await installation.rows(visits, "number", "site") == [("2", "9"), ("3", "7")]


async def test_a_type_that_refers_to_nothing_is_refused(installation: Installation) -> None:
    orders = read_type(ORDERS.replace("UNKNOWN", "ask"), "orders.yaml")
    with pytest.raises(
        RuleViolation, match=r"orders\.yaml: line \d+: \w+ refers to the type suppliers"
    ):
        await installation.types.plan(orders)
    needy = SUPPLIERS.replace("city: {}", "city: {required: true}")
    await installation.types.apply(read_type(needy, "suppliers.yaml"))
    with pytest.raises(RuleViolation, match="cannot create rows of suppliers, which need city"):
        await installation.types.apply(read_type(ORDERS.replace("UNKNOWN", "create"), "o.yaml"))


@pytest.mark.parametrize(
    ("supplier", "said"),
    [
        (("scope: []\n", ""), "belong to project_id; add it to 'scope'"),
        (
            ("key: [number]", "key: [number, city]"),
            "whose key is number, city: a cell can name a row by one field alone; give the field "
            "the kind code, or refer to a type whose key is one field",
        ),
        (
            ("fields:", "target: {file: csv}\nfields:"),
            "whose rows go into files: docflow cannot look them up there; give the field the kind "
            "code",
        ),
    ],
)
async def test_a_reference_needs_one_field_in_a_known_scope(
    installation: Installation, supplier: tuple[str, str], said: str
) -> None:
    needs = "name: sellers\ntitle: Sellers\nscope: []\nkey: [number]\nfields:\n" + (
        "  number: {kind: code, required: true}\n  city: {required: true}\n"
    )
    orders = "name: buys\ntitle: Buys\nscope: []\nkey: [number]\nfields:\n" + (
        "  number: {kind: code, required: true}\n  seller: {kind: reference, to: sellers}\n"
    )
    first, second = read_type(needs.replace(*supplier), "s.yaml"), read_type(orders, "o.yaml")
    with pytest.raises(RuleViolation, match=re.escape(said)):
        await installation.types.plan(first, second)


async def test_every_cell_that_means_no_field_is_kept_and_stays(
    installation: Installation, trades: Trades
) -> None:
    await installation.declare("invoice_lines")
    rows = b"invoice,line,note,note,\nDE-0001,1,x,y,z\n"
    await installation.imported("invoice_lines", rows)
    first = {"note": "x", "note (D)": "y", "column E": "z"}
    assert await installation.rows(trades["invoice_lines"], "other") == [(first,)]
    later = (b"invoice,line,Weight\nDE-0001,1,3\n", b"invoice,line\nDE-0001,1\n")
    for number, content in enumerate(later, 2):
        done = await installation.imported("invoice_lines", content, task_id=f"T{number}")
        assert done.counts == Counts(updated=1) if number == 2 else Counts(unchanged=1)
    found = await installation.rows(trades["invoice_lines"], "other")
    assert found == [({**first, "Weight": "3"},)]


@pytest.mark.parametrize("kind", ["integer", "date", "choice"])
@pytest.mark.parametrize("count", [2, 1_200])
async def test_a_key_needs_no_code(installation: Installation, kind: str, count: int) -> None:
    values = {
        "integer": [str(n) for n in range(1, count + 1)],
        "date": [f"{2000 + n // 300}-{n % 12 + 1:02}-{n % 25 + 1:02}" for n in range(count)],
        "choice": ["a", "b"],
    }[kind]
    more = ", choices: [a, b]" if kind == "choice" else ""
    declared = read_type(
        "name: plain\ntitle: Plain\nkey: [a]\nfields:\n"
        f"  a: {{kind: {kind}, required: true{more}}}\n  b: {{}}\n",
        "plain.yaml",
    )
    await installation.types.apply(declared)
    rows = "a,b\n" + "".join(f"{each},x\n" for each in dict.fromkeys(values))
    for task, created in (("T1", True), ("T2", False)):
        done = await installation.imported("plain", rows.encode(), task_id=task)
        number = len(set(values))
        wanted = Counts(created=number) if created else Counts(unchanged=number)
        assert done.counts == wanted, done


async def test_a_reference_names_rows_by_several_columns(installation: Installation) -> None:
    await installation.run_sql(
        'CREATE TABLE sites (project_id int, "ID" int, "Name" text, PRIMARY KEY (project_id, "ID"))'
    )
    await installation.run_sql("INSERT INTO sites VALUES (1, 7, 'North'), (2, 8, 'North')")
    site = "{kind: reference, table: sites, row_key: KEY, label: Name, unknown: refuse}"
    text = (
        "name: visits\ntitle: Visits\nkey: [number]\nfields:\n"
        f"  number: {{kind: code, required: true}}\n  site: {site}\n"
    )
    wrong = read_type(text.replace("KEY", "[Name, ID]"), "visits.yaml")
    with pytest.raises(RuleViolation, match="'row_key' names Name before the column that is"):
        await installation.types.plan(wrong)
    visits = read_type(text.replace("KEY", "[project_id, ID]"), "visits.yaml")
    await installation.types.apply(visits)
    rows = b"number,site\n1,North\n2,7\n"
    for project, created in (("1", 2), ("2", 1), ("3", 0)):
        done = await installation.imported("visits", rows, project_id=project, max_rejected_share=1)
        assert (done.counts.created, done.counts.rejected) == (created, 2 - created)
    found = await installation.rows(visits, "project_id", "site")
    assert found == [("1", "7"), ("1", "7"), ("2", "8")]
    alone = read_type(text.replace("KEY", "ID"), "visits.yaml")
    assert '"row_key":"ID"' in alone.canonical


async def test_defaults_and_conditions_are_values_of_their_kind(
    installation: Installation,
) -> None:
    declared = read_type(
        "name: visits\ntitle: Visits\nkey: [number]\n"
        "rules:\n- {required: reason, when: {urgent: 'yes', level: '3.0'}}\n"
        "fields:\n  number: {kind: code, required: true}\n"
        "  urgent: {kind: boolean, default: 'no'}\n"
        "  level: {kind: decimal, default: 3}\n  due: {kind: date, default: 2025-03-04}\n"
        "  reason: {}\n",
        "visits.yaml",
    )
    await installation.types.apply(declared)
    rows = b"number,urgent,level,due,reason\n1,,,,\n2,yes,3.00,,\n3,yes,,,pain\n4,yes,2,,\n"
    done = await installation.imported("visits", rows)
    assert (done.counts.created, done.counts.rejected) == (3, 1)
    assert (done.problems[0].line, done.problems[0].column) == (3, "reason")
    found = await installation.rows(declared, "urgent", "level", "due")
    assert found[0] == (False, Decimal(3), date(2025, 3, 4))


async def test_a_dry_run_knows_what_rows_refer_to_and_writes_nothing(
    installation: Installation,
) -> None:
    suppliers = read_type(SUPPLIERS, "suppliers.yaml")
    orders = read_type(ORDERS.replace("UNKNOWN", "refuse"), "orders.yaml")
    await installation.types.apply(suppliers)
    await installation.types.apply(orders)
    await installation.imported("suppliers", b"number\nS-1\n")
    await installation.imported("orders", b"number,supplier\n1,S-1\n", task_id="T2")
    file = installation.ports.folder / "orders.csv"
    file.write_text("number,supplier\n2,S-1\n3,S-9\n")
    given = message_of("orders", blob_name="in/orders", task_id="T3")
    async with rehearsed(installation.database, given, file) as found:
        assert found.parks is None
        assert (found.outcome.counts.created, found.outcome.counts.rejected) == (1, 1)
    assert await installation.rows(orders, "number") == [("1",)]
    done = await installation.imported("orders", b"number,supplier\n2,S-1\n", task_id="T4")
    assert done.counts == Counts(created=1)
