"""Drafts of types: what a sample shows, and what a draft asks about."""

from pathlib import Path

import pytest

from activities.imports.type_checks import check
from activities.imports.type_drafts import draft
from adapters.types.files import read_type
from tests.support.imports.activities import message_of
from workflows.imports.messages import DeclaredMessage

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
        given = message_of("things", blob_name="sample.csv")
        assert isinstance(given, DeclaredMessage)
        checked = await check(read_type(made, "things.yaml"), file, tmp_path, given)
        assert checked.rejected == []


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
            ["2025-01-31", "2025-02-28", "?"],
            "text  # nearly date, but for '?' in line 4",
            id="one in three",
        ),
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
