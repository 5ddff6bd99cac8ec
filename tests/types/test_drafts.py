"""Drafts of types: what a sample shows, and what a draft asks about."""

import csv
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest

from activities.imports.type_checks import Checked, check
from activities.imports.type_drafts import draft
from adapters.types.files import read_type
from tests.support.imports.activities import message_of
from tests.support.imports.documents import workbook
from workflows.imports.messages import DeclaredMessage
from workflows.shared.errors import InvalidDocument

CUSTOMERS = """Customers 2025;;;;;
As of:;04.03.2025;;;;
;;;;;
Customer No;Name;Weight;Phone;Day;Town
;;[kg];;;
1;2;3;4;5;6
1001;Mills;3,5;+34 600 123 456;13/04/2025;Ulm
1002;Frost;4,5;+34 600 123 457;05/06/2025;Bonn
1003;Noble;5,5;+34 600 123 458;07/08/2025;Kiel
"""
DURATION = "duration  # hours and minutes (hh:mm), or minutes and seconds (mm:ss)?"
PARTS = "Project,Alpha,,\nClient,Beta,,\nPart No,Title,Qty,Note\nA-1,Bar,2,x\nA-2,Rod,3,x\n"
BILL = """Partida;Descripción;Ud;Cantidad;Precio
;CAPÍTULO 1 DEMOLICIONES;;;
1.1;Tabique;m²;2;12,40 €
1.2;Escombros;m³;20;18,00 €
1.10;Transporte;ud;2;95,00 €
;Total capítulo 1;;24;125,40 €
;CAPÍTULO 2 ALBAÑILERÍA;;;
1.1;Fábrica;m²;80;32,10 €
1.2;Enlucido;m²;160;9,50 €
;Total capítulo 2;;240;41,60 €
;TOTAL GENERAL;;264;167,00 €
;Oferta válida 30 días;;;
"""
OPEN = "day:  # day or month first, as in 03/04/2025? Imports need date_order=dmy or mdy"


@pytest.mark.parametrize(
    ("sample", "wanted"),
    [
        pytest.param(
            CUSTOMERS,
            ["from 3 rows", "key: [customer_no]", "weight_kg:", "kind: phone", "kind: date"],
            id="a header with units and numbers below a title",
        ),
        pytest.param(
            "Weight,Length,Part No,Price\nkg,m,,EUR\n3.5,4,P-1,5\n4.5,5,P-2,6\n",
            ["from 2 rows", "key: [part_no]", "weight_kg:", "length_m:", "currency: EUR"],
            id="units below titles, before the key",
        ),
        pytest.param(
            "Part No,Weight,Share,Note\n-,[kg],[-],-\nP-1,5,0.5,x y\nP-2,6,0.25,y z\n",
            ["from 2 rows", "key: [part_no]", "weight_kg:", "share:\n    kind: decimal"],
            id="units and dashes below titles",
        ),
        pytest.param(
            "Code,Unit,Currency,Note\n,kg,EUR,\nA-1,kg,USD,x\nA-2,m,EUR,y\n",
            ["unit:\n    kind: code", "currency:\n    kind: code"],
            id="a row without a key that holds units as values",
        ),
        pytest.param(
            PARTS,
            ["from 2 rows", "key: [part_no]", "qty:\n    kind: integer"],
            id="a header below a block of texts",
        ),
        pytest.param(
            "name,Umsatz €,Price CHF,Zeit sek\na,3.5,4,5\nb,4,5,6\n",
            ["umsatz:\n    kind: money", "currency: EUR", "currency: CHF", "sek:\n    kind: int"],
            id="currencies of headers",
        ),
        pytest.param(
            "name,fax\na,030 1234567\nb,040 1234568\n", ["kind: phone"], id="phones by header"
        ),
        pytest.param("name,2024\na,5\nb,6\n", ["column_2024:"], id="a title that is a number"),
        pytest.param("name,rise\na,+5\nb,-7\n", ["rise:\n    kind: integer"], id="signed numbers"),
        pytest.param("name,day\na,03/04/2025\nb,05/06/2025\n", [OPEN], id="open days"),
        pytest.param(
            "name,day\na,03/04/2025\nb,25/06/2025\n", ["day:\n    kind: date"], id="clear days"
        ),
        pytest.param(
            BILL,
            [
                "from 5 rows",
                "3 headings or remarks without a key were left out (lines 2, 7, 12)",
                "3 totals were left out (lines 6, 10, 11)",
                "key: [partida, section]",
                "partida:  # 1.1 and 1.10 are two numbers here",
                "precio:\n    kind: money\n    required: true\n    currency: EUR",
                "section:  # the headings above rows; partida repeats without them",
            ],
            id="a bill with headings, totals and a remark",
        ),
        pytest.param(
            "Pos,Test,Result\n,Electric,\nE1,Earth,ok\nE2,Switch,ok\n,Drive,\nM1,Brake,no\n",
            ["from 3 rows", "key: [pos, section]", "pos is unique without them"],
            id="headings of unique codes",
        ),
        pytest.param(
            'Emp #,Name,Gross\n7,"Doe, J",$1.50\n8,"Fox, A",$2.50\nTotal,,$4.00\n',
            ["from 2 rows", "1 total was left out (line 4)", "key: [emp]", "currency: USD"],
            id="a total in the column of the key",
        ),
        pytest.param(
            "Nr,Price,,Note\n,net,gross,\n1,2.10,3.10,x\n2,3.10,4.20,y\n",
            ["price_net:\n    kind: decimal", "price_gross:\n    kind: decimal", "key: [nr]"],
            id="titles in two rows",
        ),
        pytest.param(
            "Plan,,Actual,\nfrom,to,from,to\n2025-01-01,2025-01-02,2025-01-01,2025-01-03\n"
            "2025-02-01,2025-02-02,2025-02-01,2025-02-03\n",
            ["plan_from:", "plan_to:", "actual_from:", "actual_to:"],
            id="titles that repeat below their groups",
        ),
        pytest.param(
            "no,name,\n1,a,x\n2,b,\n",
            ["column C has no title and 1 filled cell, such as 'x' in line 2"],
            id="a column without a title",
        ),
        pytest.param(
            "Depot,Month,Plan,Actual\n4000,Jan,10,11\n4000,Feb,12,13\n4010,Jan,14,15\n"
            "4010,Feb,16,17\n,,52,56\n",
            ["key: [depot, month]  # unique together", "1 total was left out (line 6)"],
            id="a key of two columns before numbers",
        ),
        pytest.param(
            "Region,Product,2024,2025\nN,Bar,1,2\nN,Rod,3,4\nS,Bar,5,6\nTotal,,9,12\n",
            ["key: [region, product]", 'aliases: ["2025"]', "1 total was left out (line 5)"],
            id="years as titles",
        ),
        pytest.param(
            "Rank,Bib,Name\n1.,101,Ann B\n2.,102,Ben C\nDNF,103,Cem D\n",
            ["key: [bib]", "rank:  # nearly integer, but for 'DNF' in line 4"],
            id="places of a race",
        ),
        pytest.param(
            "No,Part,Net\n1,Bar,7.5\n2,Rod,9.5\n,Total net,17\n,VAT 20 %,3.4\n,To pay,20.4\n",
            ["from 2 rows", "key: [no]", "line 5 would be rejected: No is missing"],
            id="sums below the last row",
        ),
        pytest.param(
            "Count,Name,EAN\n1,Bar one,4006381333931\n3,Rod two,4006381333948\n",
            ["key: [ean]", "ean:  # a number by which something is called"],
            id="numbers of 13 digits",
        ),
        pytest.param(
            "no,amount,rate\n1,1.500,2\n2,2.250,3\n",
            [
                "amount:  # a thousand times as much, as in 1.500? Imports need decimal=. or ,",
                "line 2 would be rejected: amount '1.500' can be read as 1.500 or 1500",
                "2 rows would be rejected: lines 2, 3",
            ],
            id="thousands or decimals",
        ),
        pytest.param(
            "no,amount,rate\n1,1.500,2.5\n2,2.250,3.25\n",
            ["amount:\n    kind: decimal"],
            id="decimals by another column",
        ),
    ],
)
async def test_a_draft_shows_what_its_sample_holds(
    tmp_path: Path, sample: str, wanted: list[str]
) -> None:
    file = tmp_path / "sample.csv"
    file.write_text(sample, encoding="utf-8")
    made = draft("things", file)
    assert [text for text in wanted if text not in made] == [], made
    if "# an import" not in made and "would be rejected" not in made:
        assert (await _checked(made, file)).rejected == []


async def _checked(made: str, file: Path) -> Checked:
    given = message_of("things", blob_name="sample.csv")
    assert isinstance(given, DeclaredMessage)
    return await check(read_type(made, "things.yaml"), file, file.parent, given)


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        pytest.param(
            [*map(str, range(1, 100)), "soon"],
            "integer  # rejected as no integer: 'soon' in line 101",
            id="one in a hundred",
        ),
        pytest.param(
            ["03/04/2025"] * 99 + ["tbd"],
            f"date{OPEN.removeprefix('day:')}; rejected as no date: 'tbd' in line 101",
            id="one among open days",
        ),
        pytest.param(
            ["x", *map(str, range(9))],
            "text  # nearly integer, but for 'x' in line 2",
            id="one in ten",
        ),
        pytest.param(
            ["2025-01-31", "2025-02-28", "soon"],
            "text  # nearly date, but for 'soon' in line 4",
            id="one in three",
        ),
        pytest.param(["2025-01-31", "2025-02-28", "?"], "date", id="a blank among dates"),
        pytest.param(["-", "-", "-"], "text  # the sample has no value for it", id="blanks alone"),
        pytest.param(["1.250,00", "980,00", "-"], "decimal", id="whole numbers with cents"),
        pytest.param(["1.250,00 €", "980,00 €", "-"], "money", id="amounts with a sign"),
        pytest.param(
            ["1:30", "2:45"],
            "time  # a time of day, or a duration? Then add clock: hh:mm or mm:ss",
            id="times that may be durations",
        ),
        pytest.param(
            ["Open", "open", "OPEN", "done", "done", "done"],
            "choice  # the sample has these values; are there others?",
            id="words that differ in case",
        ),
        pytest.param(["+", "-", "+", "+"] * 3, "code", id="signs"),
        pytest.param(["x" * 300] * 6, "text", id="one long remark"),
        pytest.param(
            [*map(str, range(196)), "a", "b", "c", "d"],
            "text  # nearly integer, but for 'a' in line 198, 'b' in line 199, 'c' in line 200"
            " and 1 more",
            id="four in two hundred",
        ),
        pytest.param([*map(str, range(99)), "1.5"], "decimal", id="a number that is not whole"),
        pytest.param(
            ["yes", "no", "maybe"] * 3,
            "choice  # the sample has these values; are there others?",
            id="words",
        ),
        pytest.param(["1", "a", "b", "2"], "code", id="half of them"),
        pytest.param(
            ["2025-01-01 07:15", "2025-01-02 16:30"],
            "timestamp  # of which clock? Then add zone: Europe/Berlin",
            id="days with a time",
        ),
        pytest.param(
            ["2025-01-01T07:15:00Z", "2025-01-02T16:30:00+01:00"], "timestamp", id="moments"
        ),
        pytest.param(["2025-01-01 00:00:00"] * 4, "date", id="days at midnight"),
        pytest.param(
            ["2025-01-01"] * 99 + ["2025-01-02 07:15"],
            "date  # the time of day is lost of '2025-01-02 07:15' in line 101",
            id="one time among days",
        ),
        pytest.param(["10115", "20095", "80331", "50667"], "integer", id="numbers as of days"),
        pytest.param(
            ["20250131", "20250228"],
            "date  # days, although they are written as numbers?",
            id="days without marks",
        ),
        pytest.param(["2.10", "3.50", "12.00"], "decimal", id="amounts"),
        pytest.param(["12.50", "7.5", "3.20"], "decimal", id="amounts without a last zero"),
        pytest.param(
            ["1.8", "1.9", "1.10", "2.1"],
            "code  # 1.1 and 1.10 are two numbers here; a decimal if they are amounts",
            id="items",
        ),
        pytest.param(
            ["1.10", "1.20", "1.30", "2.10", "2.20"],
            "code  # 1.1 and 1.10 are two numbers here; a decimal if they are amounts",
            id="items in steps of ten",
        ),
        pytest.param(
            ["10%", "12,5%", "13"],
            "decimal  # 10% is kept as 10; without units it is a part of 1",
            id="percentages",
        ),
        pytest.param(["1h 10min", "45 min", "26:30:00"], "duration", id="lengths of time"),
        pytest.param(["45 m", "30 m", "12,5 m"], "decimal", id="metres"),
        pytest.param(
            ["45 kg", "30 kg", "12"],
            "integer  # are numbers without a unit in kg as well?",
            id="some kilograms",
        ),
        pytest.param(
            ["4 boxes", "5 boxes"], "integer  # is 'boxes' a unit?", id="a word behind numbers"
        ),
        pytest.param(
            ["4 kg", "5 g"],
            "text  # numbers in kg, g; an import reads one unit in a column",
            id="two units",
        ),
        pytest.param(["12a", "14a", "15a"], "code", id="letters of codes"),
        pytest.param(
            ["07:15:20", "16:30:05"], "time  # a time of day, or a duration?", id="clocks"
        ),
        pytest.param(["26:10", "31:15"], DURATION, id="minutes and seconds"),
        pytest.param(["Deutschland", "Austria", "CH", "Österreich"], "country", id="countries"),
        pytest.param(
            ["5 €", "6 $", "7 €"],
            "money  # its cells name EUR, USD; which currency is it?",
            id="amounts in two currencies",
        ),
        pytest.param(
            [*map(str, range(30)), *("a b" * n for n in range(1, 15))],
            "text  # 30 of 44 filled cells are integer, and not 'a b' in line 32, 'a ba b' in line"
            " 33, 'a ba ba b' in line 34 and 11 more",
            id="two in three",
        ),
    ],
)
def test_a_draft_names_cells_of_another_kind(tmp_path: Path, cells: list[str], wanted: str) -> None:
    file = tmp_path / "sample.csv"
    file.write_text("\n".join(("no;thing", *(f"{n};{each}" for n, each in enumerate(cells)))))
    made = draft("things", file)
    field = made.partition("  thing:")[2].splitlines()
    comment, kind = field[0].strip(), field[1].strip().removeprefix("kind: ")
    said = f"{kind}  {comment}".strip()
    assert said == wanted, made
    read_type(made, "things.yaml")


@pytest.mark.parametrize(
    ("title", "cells", "wanted"),
    [
        ("Dauer", ["07:15:00", "08:00:00"], "kind: duration"),
        ("Pace", ["3:21", "4:10"], "clock: mm:ss"),
        ("Stunden", ["3:21", "4:10"], "clock: hh:mm"),
        ("Land", ["DE", "AT", "DE"], "kind: country"),
        ("Unit", ["KG", "ST", "KG", "ST", "KG", "ST"], "kind: choice"),
        ("Town", ["kiel", *["Kiel"] * 4, *["Ulm"] * 4, "ulm"], 'choices: ["Kiel", "Ulm"]'),
        ("Datum", ["45658", "45659"], "kind: date"),
        ("PLZ", ["10115", "20095", "10115"], "kind: code"),
        ("Tel", ["0301234567", "0401234567"], "kind: phone"),
        ("Rabatt %", ["5%", "7,5%"], 'units: ["%"]'),
        ("Pos.", ["1.10", "2.10", "1.20"], "kind: code"),
        ("Item price", ["1.10", "2.10", "1.20"], "kind: decimal"),
        ("Kundennr.", ["17", "18", "19"], "kind: code"),
    ],
)
def test_the_title_decides_what_cells_leave_open(
    tmp_path: Path, title: str, cells: list[str], wanted: str
) -> None:
    file = tmp_path / "sample.csv"
    file.write_text("\n".join((f"a;{title}", *(f"A{n};{each}" for n, each in enumerate(cells)))))
    made = draft("things", file)
    assert wanted in made.partition("  a:")[2], made


TIMES = [
    ["Name", "Time", "", "Length", "Share", "Group", 2025],
    ["", "from", "to", "", "", ""],
    ["a 1", datetime(2026, 2, 3, 7, 30), datetime(2026, 2, 3, 16), 0.3125, 0.9, "North", 1],
    ["b 2", datetime(2026, 2, 4, 7, 30), datetime(2026, 2, 4, 16), 1.5, 0.55, ""],
    ["c 3", datetime(2026, 2, 5, 7, 30), datetime(2026, 2, 5, 16), 0.25, 0.1, "South"],
]


async def test_a_workbook_shows_times_lengths_shares_and_merged_titles(tmp_path: Path) -> None:
    formats = {
        (line, column): form
        for line in (2, 3, 4)
        for column, form in {
            1: "yyyy-mm-dd hh:mm",
            2: "yyyy-mm-dd hh:mm",
            3: "[h]:mm",
            4: "0%",
        }.items()
    }
    sheets = {"Times": TIMES, "Notes": [["read me"]]}
    file = workbook(
        tmp_path / "times.xlsx", sheets, formats=formats, merged=[(0, 1, 0, 2), (2, 5, 3, 5)]
    )
    made = draft("times", file)
    kinds = {name: each.kind for name, each in read_type(made, "times.yaml").fields.items()}
    assert kinds == {
        "name": "text",
        "time_from": "timestamp",
        "time_to": "timestamp",
        "length": "duration",
        "share": "decimal",
        "group": "code",
        "column_2025": "integer",
    }, made
    assert "# the draft is of the sheet 'Times', and not of 'Notes'" in made
    assert (await _checked(made, file)).rejected == []


@pytest.mark.parametrize(
    ("pattern", "value", "wanted"),
    [
        ('#,##0.00 "€"', 12.5, "kind: money\n    required: true\n    currency: EUR\n"),
        ("#,##0.00 [$CHF-807]", 12, "kind: money\n    required: true\n    currency: CHF\n"),
        ("0%", 0.05, 'kind: decimal\n    required: true\n    units: ["%"]\n'),
        ("[h]:mm", 0.3125, "kind: duration\n"),
        ("[mm]:ss", 0.0625, "kind: duration\n"),
        ("hh:mm", 0.3125, "kind: time\n"),
        ("dd.mm.yyyy", 45678, "kind: date\n"),
        ("dd.mm.yyyy hh:mm", 45678.5, "kind: timestamp\n"),
        ("0.00", 12.5, "kind: decimal\n"),
    ],
)
async def test_the_format_of_cells_is_drafted_as_imports_read_it(
    tmp_path: Path, pattern: str, value: float, wanted: str
) -> None:
    rows = [["No", "Thing"], *([f"A{n}", value] for n in range(4))]
    formats = dict.fromkeys(((line, 1) for line in range(1, 5)), pattern)
    file = workbook(tmp_path / "sample.xlsx", {"S": rows}, formats=formats)
    made = draft("things", file)
    assert wanted in f"{made.partition('  thing:')[2]}\n", made
    assert (await _checked(made, file)).rejected == []


async def test_a_day_as_a_title_is_told(tmp_path: Path) -> None:
    rows = [["No", "Name", datetime(2025, 1, 1)], ["A1", "Bar", 5], ["A2", "Rod", 6]]
    made = draft("plan", workbook(tmp_path / "plan.xlsx", {"Plan": rows}))
    assert "# column C has no text as its title and 2 filled cells, such as '5' in line 2" in made


HEADERS = (
    *(
        "No",
        "Name",
        "NAME",
        "Project ID",
        "%",
        "x" * 130,
        "x" * 140,
        "日本",
        "Column 2",
        "1",
        "null",
    ),
    *("sequence", "Größe", "Groesse", "Preis (€)", 'a: "b" #c', "yes", "created_at", "a\nb", "Nr."),
)
COLUMNS = (
    ["1", "2", "3", "4", "5", "6"],
    ["Anna Long", "Ben", "Anna Long", "", "Cem", "Dan"],
    ["1.250,00", "980,00", "3,5", "-", "1,00", "7,25"],
    ["5 €", "6 €", "7 €", "8 €", "9 €", "10 €"],
    ["-"] * 6,
    ["n/a", "1", "2", "?", "3", "4"],
    ["open", "Open", "done", "OPEN", "done", "open"],
    ["x" * 300, "y" * 101, "z", "", "-", "x" * 300],
    ["1:30", "2:45", "10:00", "0:10", "23:59", "7:15"],
    ["26:30:00", "01:00:00", "", "00:10:00", "2:00:00", "3:00:00"],
    ["03/04/2025", "05/06/2025", "", "01/02/2025", "07/08/2025", "09/10/2025"],
    ["2025-01-31", "tbd", "2025-02-28", "", "2025-03-31", "2025-04-30"],
    ["yes", "no", "yes", "", "no", "yes"],
    ["+", "-", "+", "-", "+", "-"],
    ["007", "008", "08 a", "", "009", "010"],
    ["a@b.co", "c@d.co", "none", "e@f.co", "", "g@h.co"],
    ["+49 30 123456", "030 123457", "", "030 123458", "030 123459", "030 1234567"],
    ["10%", "12,5%", "13", "", "1%", "100%"],
    ["3-Mar", "#N/A", "1e+12", "=1+1", "'x", '"'],
    ["1", "1", "2", "2", "2", ""],
)
WIDE = [f"F{number}" for number in range(130)]


@pytest.mark.parametrize("turn", range(len(HEADERS)))
async def test_a_draft_of_an_odd_file_is_a_type(tmp_path: Path, turn: int) -> None:
    columns = [COLUMNS[(place + turn) % len(COLUMNS)] for place in range(len(HEADERS))]
    await _see_that_it_fits(tmp_path, HEADERS, columns)
    await _see_that_it_fits(tmp_path, HEADERS[turn : turn + 3], columns[turn : turn + 3])


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        pytest.param(WIDE, "100 fields at most", id="too many columns"),
        pytest.param(["No", "Name", "Name"], "'Name' is there twice", id="a double title"),
        pytest.param(["%", "No", "°"], "'%' has no letter", id="titles without letters"),
        pytest.param(["Project ID", "No", "x"], "project_id_:", id="a name of the scope"),
    ],
)
async def test_a_draft_says_what_is_left_out(
    tmp_path: Path, headers: list[str], wanted: str
) -> None:
    columns = [COLUMNS[0], COLUMNS[1], *[COLUMNS[3]] * (len(headers) - 2)]
    assert wanted in await _see_that_it_fits(tmp_path, headers, columns)


async def _see_that_it_fits(
    tmp_path: Path, headers: Sequence[str], columns: Sequence[list[str]]
) -> str:
    """The draft of a file, which takes each row of it or says why not."""
    file = tmp_path / "sample.csv"
    with file.open("w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, delimiter=";").writerows([headers, *zip(*columns, strict=True)])
    made = draft("things", file)
    try:
        refused = (await _checked(made, file)).rejected
        assert bool(refused) == ("would be rejected" in made), (refused, made)
    except InvalidDocument as error:
        assert f"# an import of the sample would be refused: {error}"[:200] in made
    return made
