"""Workbooks and texts as departments write them: what goes in, what is refused, what is said."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.files.open_documents import ods_of
from tests.support.imports.documents import Document, read, text, workbook
from workflows.shared.errors import InvalidDocument

EQUIPMENT = [["Code", "Description", "Rate"], ["E-1", "Crane", 10.5], ["E-2", "Pump", 20]]
TAKE_OFF = ["Drawing", "Commodity", "Description", "Qty", "Unit"]


@pytest.fixture
def xlsx(tmp_path: Path) -> Callable[..., Path]:
    return lambda *args, **more: workbook(tmp_path / "file.xlsx", *args, **more)


@pytest.fixture
def csv(tmp_path: Path) -> Callable[..., Path]:
    return lambda *lines, **more: text(tmp_path / "file.csv", *lines, **more)


def one_sheet(*rows: list[Any]) -> dict[str, list[list[Any]]]:
    return {"Sheet1": list(rows)}


def codes(document: Document) -> list[str]:
    return document.column("code")


class TestSheets:
    def test_a_hidden_sheet_is_not_chosen_before_a_visible_one(self, xlsx: Any) -> None:
        old = [["Code", "Rate"], ["E-1", 99]]
        found = read(xlsx({"Old": old, "New": EQUIPMENT}, hidden=["Old"]))
        assert found.column("rate") == [Decimal("10.5"), Decimal(20)]
        assert found.note == "Sheets not read: 'Old' (hidden)."

    def test_a_hidden_sheet_is_read_when_it_is_named(self, xlsx: Any) -> None:
        file = xlsx({"Old": EQUIPMENT, "Cover": [["Project"], ["Rev", 1]]}, hidden=["Old"])
        with pytest.raises(InvalidDocument, match="the hidden sheet 'Old' does: name it"):
            read(file)
        assert codes(read(file, sheet="old")) == ["E-1", "E-2"]

    def test_sheets_with_other_keys_are_all_read(self, xlsx: Any) -> None:
        more = [["Equipment, area 2"], ["Rate", "Description", "Code"], [5, "Saw", "E-3"]]
        found = read(xlsx({"A": EQUIPMENT, "B": more, "Notes": [["nothing here"]]}))
        assert codes(found) == ["E-1", "E-2", "E-3"]
        assert found.note == "Sheets read: 'A', 'B'. Sheets not read: 'Notes'."

    def test_the_same_rows_on_two_sheets_count_once(self, xlsx: Any) -> None:
        found = read(xlsx({"A": EQUIPMENT, "B": EQUIPMENT}))
        assert (codes(found), found.rejected) == (["E-1", "E-2"], [])
        assert "2 rows stand on several sheets with the same values, counted once" in found.note

    def test_a_take_off_of_two_sheets_counts_no_line_twice(self, xlsx: Any) -> None:
        lines = [TAKE_OFF, ["D-1", "P", "Pipe", 2, "m"], ["D-1", "P", "Pipe", 3, "m"]]
        other = [TAKE_OFF, ["D-2", "P", "Pipe", 2, "m"]]
        found = read(xlsx({"A": lines, "B": other, "C": lines}), "mto")
        assert found.column("quantity") == [2, 3, 2]

    def test_each_sheet_of_a_bill_numbers_lines_of_its_own(self, xlsx: Any) -> None:
        title = ["Item", "Description", "Qty"]
        sheets = {
            name: [title, ["1", text, 2], ["2", "Door", 1]]
            for name, text in (("Bill 1", "Wall"), ("Bill 2", "Roof"))
        }
        file = xlsx({**sheets, "Notes": [["nothing here"]]})
        found = read(file, "estimation_master")
        assert found.column("section") == ["Bill 1", "Bill 1", "Bill 2", "Bill 2"]
        alone = read(file, "estimation_master", sheet="Bill 2")
        assert alone.column("section") == ["Bill 2", "Bill 2"]

    def test_one_key_with_two_values_is_asked_about(self, xlsx: Any) -> None:
        second = [["Code", "Description", "Rate"], ["E-7", "Saw", 1], ["E-2", "Pump", 21]]
        file = xlsx({"Rev A": EQUIPMENT, "Rev B": second})
        said = r"1 key stands on sheets 'Rev A' and 'Rev B' .*\(lines 3 and 3, for one\)"
        with pytest.raises(InvalidDocument, match=said):
            read(file)
        assert read(file, sheet="Rev B").column("rate") == [1, 21]

    def test_sheets_with_other_columns_are_asked_about(self, xlsx: Any) -> None:
        other = [["Code", "Description", "Make"], ["E-3", "Saw", "Stihl"]]
        with pytest.raises(InvalidDocument, match="only 'A' has rate; only 'B' has make"):
            read(xlsx({"A": EQUIPMENT, "B": other}))

    def test_a_blank_form_is_no_second_table(self, xlsx: Any) -> None:
        form = [["Fill in below"], ["Code", "Description", "Rate", "Make"]]
        found = read(xlsx({"Form": form, "A": EQUIPMENT}))
        assert codes(found) == ["E-1", "E-2"]
        assert found.note == "Sheets not read: 'Form'."
        assert read(xlsx({"Form": form})).rows == []

    def test_lines_of_several_sheets_are_those_of_their_sheet(self, xlsx: Any) -> None:
        more = [["Code", "Description", "Rate"], ["E-3", "Saw", "cheap"], ["E-3", "Saw", 1]]
        found = read(xlsx({"A": EQUIPMENT, "B": more}))
        assert [(line, column) for line, column, _ in found.rejected] == [(2, "Rate"), (3, "Code")]
        assert "same code as line 2" in found.rejected[1][2]


class TestHeaders:
    def test_units_in_brackets(self, xlsx: Any) -> None:
        titles = ["Item", "Qty (EA)", "Unit Rate (USD)", "Labour Cost [EUR]", "Man Hours (h)"]
        found = read(xlsx(one_sheet(titles, ["A", 1, 2, 3, 4])), "estimation_master")
        assert found.rows == [
            {
                "item_code": "A",
                "quantity": 1,
                "unit_rate": 2,
                "labour_cost": 3,
                "man_hours": 4,
            }
        ]
        assert found.note == ""

    @pytest.mark.parametrize("title", ["Price (TEUR)", "Price in k\u20ac", "Unit price ('000 USD)"])
    def test_a_title_that_multiplies_is_another_column(self, xlsx: Any, title: str) -> None:
        found = read(xlsx(one_sheet(["Code", title], ["A", 5])), "material")
        assert found.rows == [{"code": "A"}]
        assert "(1 value)" in found.note

    def test_a_wage_is_no_cost(self, xlsx: Any) -> None:
        titles = ["Item", "Lohn \u20ac/h", "Qty per m", "Rate (per day)"]
        sheet = one_sheet(titles, ["A", 30, 2, 5])
        found = read(xlsx(sheet), "estimation_master", without_quantities=True)
        assert found.rows == [{"item_code": "A", "unit_rate": 5}]
        assert "'Lohn \u20ac/h' (1 value), 'Qty per m' (1 value)" in found.note

    def test_weeks_are_no_days(self, xlsx: Any) -> None:
        titles = ["Code", "Lead Time (weeks)", "Lead time [days]"]
        found = read(xlsx(one_sheet(titles, ["A", 2, 14])), "material")
        assert found.column("lead_time_days") == [14]
        assert found.note == "Columns not used: 'Lead Time (weeks)' (1 value)."

    def test_units_below_the_titles(self, xlsx: Any) -> None:
        rows = (["Code", "Description", "Rate"], [None, None, "EUR"], ["E-1", "Crane", 5])
        found = read(xlsx(one_sheet(*rows)))
        assert (codes(found), found.rejected) == (["E-1"], [])

    def test_a_title_over_several_columns(self, xlsx: Any) -> None:
        rows = (
            ["Item", "Description", "Cost", None, None, "Qty"],
            [None, None, "Labour", "Material", "Equipment", None],
            ["A", "Wall", 1, 2, 3, 4],
        )
        found = read(xlsx(one_sheet(*rows), merged=[(0, 2, 0, 4)]), "estimation_master")
        assert found.rows[0] == {
            "item_code": "A",
            "description": "Wall",
            "labour_cost": 1,
            "material_cost": 2,
            "equipment_cost": 3,
            "quantity": 4,
        }

    def test_required_titles_in_two_rows(self, xlsx: Any) -> None:
        rows = (
            ["Drawing", "Commodity", None, "Quantity", None],
            [None, "Code", "Description", "Qty", "Unit"],
            ["D-1", "P", "Pipe", 2, "m"],
        )
        [row] = read(xlsx(one_sheet(*rows)), "mto").rows
        assert (row["commodity_code"], row["quantity"], row["unit"]) == ("P", 2, "m")

    def test_the_numbers_of_columns(self, xlsx: Any) -> None:
        rows = (["Code", "Description", "Rate"], [1, 2, 3], ["E-1", "Crane", 5])
        assert codes(read(xlsx(one_sheet(*rows)))) == ["E-1"]

    def test_columns_that_are_not_used_are_named_with_their_values(self, xlsx: Any) -> None:
        rows = (["Code", None, "Colour", "Empty"], ["E-1", 5, "red"], ["E-2", 6, None, None, "x"])
        assert read(xlsx(one_sheet(*rows))).note == (
            "Columns not used: column B without a title (2 values), 'Colour' (1 value), "
            "column E without a title (1 value)."
        )

    @pytest.mark.parametrize(
        ("titles", "row", "field", "value", "named"),
        [
            (["Qty", "Length"], [2, 12], "quantity", 2, "'Length' (1 value, fits quantity too)"),
            (["Qty", "Length"], [None, 12], "quantity", 12, None),
            (["Qty", "UOM", "Unit"], [1, "a", "b"], "unit", "b", "'UOM' (1 value, fits unit too)"),
        ],
    )
    def test_two_columns_for_one_field(
        self, xlsx: Any, titles: Any, row: Any, field: str, value: Any, named: str | None
    ) -> None:
        rows = (["Drawing", "Commodity", *titles], ["D-1", "P", *row])
        found = read(xlsx(one_sheet(*rows)), "mto")
        assert found.column(field) == [value]
        assert (named or "") in found.note

    def test_a_hidden_column_is_not_chosen_before_a_visible_one(self, xlsx: Any) -> None:
        rows = (["Drawing", "Commodity", "Quantity", "Qty"], ["D-1", "P", 99, 2])
        found = read(
            xlsx(
                one_sheet(*rows),
                also=lambda _, sheet: sheet.set_column(2, 2, None, None, {"hidden": True}),
            ),
            "mto",
        )
        assert found.column("quantity") == [2]
        assert found.note == "Columns not used: 'Quantity' (1 value, fits quantity too)."

    @pytest.mark.parametrize("items", [["Excavation", "Excavation"], [1, 2]])
    def test_codes_are_distinguished_from_names_and_numbers(
        self, xlsx: Any, items: list[Any]
    ) -> None:
        rows = (["Item", "Code", "Qty"], [items[0], "03.10", 1], [items[1], "03.20", 2])
        found = read(xlsx(one_sheet(*rows)), "estimation_master")
        assert found.column("item_code") == ["03.10", "03.20"]
        assert "'Item' (2 values, fits item_code too)" in found.note

    def test_twins_are_asked_about_and_the_message_can_say(self, xlsx: Any) -> None:
        file = xlsx(one_sheet(["Code", "Rate (old)", "Rate (new)"], ["E-1", 1, 2]))
        with pytest.raises(InvalidDocument, match=r"columns B 'Rate .old.' and C 'Rate .new.'"):
            read(file)
        assert read(file, map={"Rate (new)": "rate"}).column("rate") == [2]
        assert read(file, map={"Rate (new)": "-"}).column("rate") == [1]

    def test_a_message_maps_to_fields_only(self, xlsx: Any) -> None:
        with pytest.raises(InvalidDocument, match="maps 'Rate' to 'price', which is not a field"):
            read(xlsx(one_sheet(*EQUIPMENT)), map={"Rate": "price"})


TAKE_OFF_LINES = (
    TAKE_OFF,
    ["D-1", "P", "Pipe", 2, "m"],
    ["D-1", "E", "Elbow", 3, "ea"],
)
ROWS_THAT_ARE_NO_DATA = (
    # The key is a totals word, beside it stand numbers alone, and each is a sum of rows above.
    ("equipment", (*EQUIPMENT, ["Total", None, 30.5]), "1 total was left out (line 4)"),
    ("equipment", (*EQUIPMENT, ["Gesamtergebnis:", None, 30.5]), "1 total was left out (line 4)"),
    (
        "mto",
        (
            *TAKE_OFF_LINES,
            ["Total", None, None, 5],
            ["D-2", "P", None, 4],
            ["Grand Total", *[None] * 2, 9],
        ),
        "2 totals were left out (lines 4, 6)",
    ),
    # Numbers of columns that are not imported count as well.
    (
        "equipment",
        (["Code", "Rate", "Worth"], ["A", 1, 200], ["B", 2, 300], ["Sum", None, 500]),
        "1 total was left out (line 4)",
    ),
    # Without a key: a sum of rows above, or a text alone.
    ("equipment", (*EQUIPMENT, [None, "Cranes in all", 30.5]), "1 total was left out (line 4)"),
    ("equipment", (*EQUIPMENT, [None, "Rented"]), "1 heading or remark without a key was left out"),
    # The header again, also where most of its columns are not used; the same footer once more.
    (
        "equipment",
        (["Code", "Colour"], ["E-1", "red"], ["Code", "Colour"], ["E-2", "blue"]),
        "1 repeated header was left out (line 3)",
    ),
    ("equipment", (*EQUIPMENT, EQUIPMENT[0]), "1 repeated header was left out (line 4)"),
    (
        "equipment",
        (*EQUIPMENT, ["Page 1 of 2"], ["Page 2 of 2"]),
        "2 page footers were left out (lines 4, 5)",
    ),
)
ROWS_WITH_A_KEY = (
    ["Total", None, 31],  # not the sum
    ["Total", None, None],  # no number at all
    ["Total", "Rented", 30.5],  # another text
    ["Total station", None, 30.5],  # more than the word
    ["E-9", "Total", 30.5],  # the word stands in another column
    ["E-9", "Sum", 30.5],
    ["Page 7", None, None],  # a footer that stands nowhere else
    ["Prepared by", "J. Doe", None],
    ["Note: with fuel", None, None],
    ["Date", "Clock", 5],
    ["CRANES", None, None],
    ["www.example.org", None, None],
    ["Nummer", None, None],  # called like a column, in other words than the file's
    ["Lump sum", "Insurance", 30.5],
)


class TestRowsThatAreNoData:
    @pytest.mark.parametrize(("type", "rows", "note"), ROWS_THAT_ARE_NO_DATA)
    def test_rows_that_are_no_data_are_left_out(
        self, xlsx: Any, type: str, rows: Any, note: str
    ) -> None:
        found = read(xlsx(one_sheet(*rows)), type)
        assert found.rejected == []
        assert note in found.note
        kept = read(xlsx(one_sheet(*rows)), type, left_out="keep")
        assert len(kept.rows) + len({line for line, _, _ in kept.rejected}) == len(rows) - 1

    @pytest.mark.parametrize("row", ROWS_WITH_A_KEY)
    def test_a_row_with_a_key_of_its_own_is_a_row(self, xlsx: Any, row: list[Any]) -> None:
        found = read(xlsx(one_sheet(*EQUIPMENT, row)))
        assert (codes(found), found.rejected) == (["E-1", "E-2", row[0]], [])
        assert "left out" not in found.note

    def test_an_odd_key_is_remarked(self, xlsx: Any) -> None:
        found = read(xlsx(one_sheet(*EQUIPMENT, ["Total", None, 31], ["Page 7", "Pump", 1])))
        said = "2 rows with a doubtful key were taken (lines 4 'Total', 5 'Page 7')."
        assert found.note == said

    def test_rows_of_a_key_alone_are_remarked(self, xlsx: Any) -> None:
        found = read(xlsx(one_sheet(*EQUIPMENT, ["CRANES"])))
        assert found.note == "1 row with nothing but a key was taken (line 4)."
        assert read(xlsx(one_sheet(["Code", "Rate"], ["A"], ["B"], ["C", 1]))).note == ""

    def test_a_row_without_a_key_is_rejected(self, xlsx: Any) -> None:
        found = read(xlsx(one_sheet(*EQUIPMENT, [None, "Saw", 7])))
        assert found.rejected == [(4, "Code", "is missing")]

    def test_a_line_that_a_person_keeps_is_a_row(self, xlsx: Any) -> None:
        file = xlsx(one_sheet(*EQUIPMENT, ["Total", None, 30.5], ["Page 1"], ["Page 2"]))
        assert codes(read(file, keep_lines=["4"])) == ["E-1", "E-2", "Total"]
        assert codes(read(file, keep_lines=["sheet1!5", "Other!6"])) == ["E-1", "E-2", "Page 1"]
        both = xlsx({"A": EQUIPMENT, "B": [EQUIPMENT[0], ["E-3", None, 1], ["Page 1"], ["Page 2"]]})
        assert codes(read(both, keep_lines=["B!4"])) == ["E-1", "E-2", "E-3", "Page 2"]

    def test_a_title_with_the_place_of_a_key_is_a_row_wherever_it_stands(self, csv: Any) -> None:
        page = ("Crane;;", "Code;Description;Rate", "E-1;Crane;1")
        found = read(csv(*page, *page[:2], "E-2;Pump;2"))
        assert codes(found) == ["E-1", "Crane", "E-2"]
        assert "1 repeated header was left out (line 5)" in found.note

    def test_an_error_in_the_key_is_rejected(self, csv: Any) -> None:
        found = read(csv("Code;Rate", "E-1;1", "E-2;2", "#REF!", "4,1E+12"))
        assert [line for line, _, _ in found.rejected] == [4, 5]

    def test_a_code_alone_is_a_row(self, csv: Any) -> None:
        assert codes(read(csv("Code,Rate", "A,1", "B,2", "C", "D"))) == ["A", "B", "C", "D"]
        assert codes(read(csv("Code", "A1", "B", "C 3"))) == ["A1", "B", "C 3"]

    def test_a_header_in_other_words_is_a_header(self, csv: Any) -> None:
        lines = ("E-1,Crane,CAT", "CODE,DESCR,MANUFACTURER", "E-2,Pump,KSB")
        found = read(csv("Code,Description,Make", *lines))
        assert codes(found) == ["E-1", "E-2"]
        assert found.note == "1 repeated header was left out (line 3)."

    def test_a_table_with_other_columns_below_is_asked_about(self, csv: Any) -> None:
        lines = ("E-1,Crane,CAT", "", "Code,Make,Description", "E-2,KSB,Pump")
        said = r"another table begins on line 4: its column B is 'Make', that of line 1 is 'Descri"
        with pytest.raises(InvalidDocument, match=said):
            read(csv("Code,Description,Make", *lines))

    def test_a_header_of_two_rows_is_repeated(self, xlsx: Any) -> None:
        titles = ["Item", "Description", "Cost", None, "Qty"]
        header = (titles, [None, None, "Labour", "Material", None])
        rows = (*header, ["A1", "Wall", 1, 2, 5], *header, ["A2", "Roof", 3, 4, 5])
        found = read(xlsx(one_sheet(*rows)), "estimation_master")
        assert (found.column("item_code"), found.rejected) == (["A1", "A2"], [])

    def test_rows_with_values_in_other_columns_only(self, xlsx: Any) -> None:
        rows = (["Code", "Rate", "Remark"], ["E-1", 5, None], [None, None, "see letter"])
        assert "1 row stands in columns only that are not used" in read(xlsx(one_sheet(*rows))).note


def test_an_ods_file_of_libreoffice(tmp_path: Path) -> None:
    def shown(text: str, more: str = 'office:value-type="string"') -> str:
        return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"

    def row(*cells: str) -> str:
        return f"<table:table-row>{''.join(cells)}</table:table-row>"

    error = 'office:value-type="string" office:string-value="" calcext:value-type="error"'
    merged = 'office:value-type="string" table:number-rows-spanned="2"'
    hidden = '<style:table-properties table:display="false"/>'
    styles = f'<style:style style:name="h" style:family="table">{hidden}</style:style>'
    tables = (
        '<table:table table:name="Old" table:style-name="h">'
        + row(shown("Code"))
        + row(shown("X"))
        + '</table:table><table:table table:name="New">'
        + row(shown("Code"), shown("Category"), shown("Rate"))
        + row(
            shown("00123", 'office:value-type="float" office:value="123"'),
            shown("Cranes", merged),
            shown("5", 'office:value-type="float" office:value="5"'),
        )
        + row(shown("E-2"), "<table:covered-table-cell/>", shown("Err:502", error))
        + "</table:table>"
    )
    file = tmp_path / "file.ods"
    file.write_bytes(ods_of(tables, styles))
    found = read(file)
    assert found.rows == [{"code": "00123", "category": "Cranes", "rate": 5}]
    assert [(line, column) for line, column, _ in found.rejected] == [(3, "Rate")]
    assert found.note == (
        "Sheets not read: 'Old' (hidden). "
        "Merged cells were filled down, with the number of rows: 'Category' (1)."
    )
