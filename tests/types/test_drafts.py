"""Drafts of types: what a sample shows, and what a draft asks about."""

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from activities.imports.type_checks import Checked, check
from activities.imports.type_drafts import draft
from adapters.types.files import read_type
from tests.support.imports.activities import message_of
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
PARTS = "Project,Alpha,,\nClient,Beta,,\nPart No,Title,Qty,Note\nA-1,Bar,2,x\nA-2,Rod,3,x\n"
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
    ],
)
async def test_a_draft_shows_what_its_sample_holds(
    tmp_path: Path, sample: str, wanted: list[str]
) -> None:
    file = tmp_path / "sample.csv"
    file.write_text(sample, encoding="utf-8")
    made = draft("things", file)
    assert [text for text in wanted if text not in made] == [], made
    if OPEN not in made:
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
