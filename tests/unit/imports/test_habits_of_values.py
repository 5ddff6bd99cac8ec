"""Numbers, dates, codes and blanks as departments write them."""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from tests.support.imports.documents import Document, read, text, workbook

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


class TestValues:
    def test_codes_are_what_their_format_shows(self, xlsx: Any) -> None:
        patterns = {(1, 0): "00000", (2, 0): '"E-"000', (3, 0): "000-000", (1, 1): "000"}
        rows = (["Code", "Rate"], [123, 5], [7, 6], [12345, 7])
        found = read(xlsx(one_sheet(*rows), formats=patterns))
        assert codes(found) == ["00123", "E-007", "012-345"]
        assert found.column("rate") == [5, 6, 7]

    @pytest.mark.parametrize(("first_year", "number"), [(1900, 45_000), (1904, 43_538)])
    def test_day_numbers_count_from_the_first_year_of_the_workbook(
        self, tmp_path: Path, first_year: int, number: int
    ) -> None:
        path = tmp_path / "file.xlsx"
        with xlsxwriter.Workbook(str(path), {"date_1904": first_year == 1904}) as book:
            sheet = book.add_worksheet()
            sheet.write_row(0, 0, ["Employee no", "Valid from"])
            sheet.write_row(1, 0, ["E-1", number])
        assert read(path, "crew_member").column("valid_from") == [date(2023, 3, 15)]

    def test_codes_that_look_the_same_are_the_same(self, csv: Any) -> None:
        rows = ("E\u00a01\u200b,1", "\ufeff\u00a0,2", "E 1,3", "E-2\u00ad,4")
        found = read(csv("Code,Rate", *rows))
        assert codes(found) == ["E 1", "E-2"]
        reasons = [(line, reason) for line, _, reason in found.rejected]
        assert reasons == [(3, "is missing"), (4, "same code as line 2")]

    def test_accents_and_hyphens_that_look_the_same_are_the_same(self, csv: Any) -> None:
        rows = ("Gera\u0308t\u20111,1", "Ger\u00e4t-1,2", "Gera\u0308t\u20132,3")
        found = read(csv("Code,Description", *rows))
        assert codes(found) == ["Ger\u00e4t-1", "Ger\u00e4t\u20132"]
        assert [(line, reason) for line, _, reason in found.rejected] == [
            (3, "same code as line 2")
        ]

    def test_codes_may_be_web_addresses(self, csv: Any) -> None:
        rows = (
            "https://parts.example.org/1,Pump",
            "www.parts.example.org,Saw",
            "www.club.example.org,",
        )
        found = read(csv("Code,Description", *rows))
        assert codes(found) == [
            "https://parts.example.org/1",
            "www.parts.example.org",
            "www.club.example.org",
        ]

    def test_codes_that_lost_digits_are_problems(self, csv: Any, xlsx: Any) -> None:
        found = read(csv("Code;Serial;Rate", "4,01235E+12;x;1", "E-1;1E+05;2", "1E5;12E3;3"))
        assert codes(found) == ["1E5"]
        assert [column for _, column, _ in found.rejected] == ["Code", "Serial"]
        assert found.rejected[0][2].startswith("is a number without its last digits")
        found = read(xlsx(one_sheet(["Code", "Status"], ["E+1", 5], ["4E+12", "4E+12"])))
        assert codes(found) == ["E+1"]

    @pytest.mark.parametrize("size", ["04-Mar", "3. Apr", "Mrz 75", "Feb-01", "01-f\u00e9vr"])
    def test_a_size_that_became_a_date_is_a_problem(self, csv: Any, size: str) -> None:
        rows = ("D;P;3/4;1", f"D;P;{size};1", "D;MAR-10;MAY 2;1")
        found = read(csv("Drawing;Ident;Size;Qty", *rows), "mto")
        assert found.column("size") == ["3/4", "MAY 2"]
        assert found.rejected[0][:2] == (3, "Size")

    def test_a_day_with_a_time_that_is_shown_as_a_time(self, xlsx: Any) -> None:
        rows = (["Employee", "From"], ["1", 42213.5], ["2", 42214.25])
        patterns = {(1, 1): "h:mm", (2, 1): "[h]:mm"}
        found = read(xlsx(one_sheet(*rows), formats=patterns), "crew_member")
        assert found.column("valid_from") == [date(2015, 7, 28), date(2015, 7, 29)]

    def test_errors_and_missing_results_are_problems_of_their_cells(self, xlsx: Any) -> None:
        def formulas(book: Any, sheet: Any) -> None:
            sheet.write_formula(2, 1, "=1/0", None, "#DIV/0!")
            sheet.write_formula(2, 2, "=A1*2")
            sheet.write_formula(3, 2, "=10*2", None, 20)

        rows = (["Code", "Description", "Rate", "Status"], ["E-1", "#N/A", 5, "########"])
        rows = (*rows, ["E-2", "x", 1, "ok"], ["E-3", "=SUM(1)", 1, "ok"])
        found = read(xlsx(one_sheet(*rows), also=formulas))
        assert [(line, column) for line, column, _ in found.rejected] == [
            (2, "Description"),
            (2, "Status"),
            (3, "Description"),
            (3, "Rate"),
        ]
        assert found.rejected[3][2].startswith("is a formula without a result")
        assert found.rows == [
            {"code": "E-3", "description": "=SUM(1)", "rate": Decimal(20), "status": "ok"}
        ]

    def test_merged_keys_are_filled_down_and_quantities_are_not(self, xlsx: Any) -> None:
        rows = (
            TAKE_OFF,
            ["D-1", "P", "Pipe", 2, "m"],
            [None, "E", "Elbow", 3, None],
            [None, "F", "Flange", None, None],
        )
        merged = [(1, 0, 3, 0), (1, 4, 3, 4), (2, 3, 3, 3)]
        found = read(xlsx(one_sheet(*rows), merged=merged), "mto")
        assert found.column("drawing") == ["D-1", "D-1"]
        assert found.column("unit") == ["m", "m"]
        assert [(line, column) for line, column, _ in found.rejected] == [(4, "Qty")]
        assert found.note == (
            "Merged cells were filled down, with the number of rows: 'Drawing' (2), 'Unit' (2)."
        )

    @pytest.mark.parametrize(
        ("written", "day"),
        [
            ("5-Mar-2025", date(2025, 3, 5)),
            ("1ST Dec 2021", date(2021, 12, 1)),
            ("2nd of March 2020", date(2020, 3, 2)),
            ("05-Mar-25 A", date(2025, 3, 5)),
            ("Wed 05-Mar-25 08:00", date(2025, 3, 5)),
            ("5. M\u00e4rz 2025", date(2025, 3, 5)),
            ("05-f\u00e9vr.-25", date(2025, 2, 5)),
            ("March 5, 2025", date(2025, 3, 5)),
            ("20250305", date(2025, 3, 5)),
            ("2025-03-05T14:30:00Z", date(2025, 3, 5)),
            ("05.03.2025 08:00", date(2025, 3, 5)),
            ("3/25/25", date(2025, 3, 25)),
            ("45721", date(2025, 3, 5)),
        ],
    )
    def test_dates(self, csv: Any, written: str, day: date) -> None:
        found = read(csv("Employee;From", f"1;{written}"), "crew_member")
        assert (found.column("valid_from"), found.rejected) == ([day], [])

    @pytest.mark.parametrize("written", ["9999-12-31", "31.12.9999", "-", "n/a", "00.00.0000", ""])
    def test_open_ends(self, csv: Any, written: str) -> None:
        found = read(csv("Employee;From;To", f"1;2025-03-04;{written}"), "crew_member")
        assert found.rows == [{"employee_no": "1", "valid_from": date(2025, 3, 4)}]

    def test_dates_as_cells(self, xlsx: Any) -> None:
        rows = (
            ["Employee", "From", "To"],
            ["1", datetime(2025, 3, 5, 7, 30), date(9999, 12, 31)],
            ["2", 45721, 20250306],
        )
        found = read(xlsx(one_sheet(*rows)), "crew_member")
        assert found.column("valid_from") == [date(2025, 3, 5), date(2025, 3, 5)]
        assert found.column("valid_to") == [None, date(2025, 3, 6)]

    @pytest.mark.parametrize(
        ("written", "number"),
        [
            ("$12,000.00", "12000"),
            ("12.000,00 \u20ac", "12000"),
            ("EUR 1.234,5", "1234.5"),
            ("1'234.50 CHF", "1234.5"),
            ("10%", "0.1"),
            ("12,5 %", "0.125"),
            ("+5", "5"),
            ("(500.00)", "-500"),
            ("\u20b91,72,500/-", "172500"),
            ("500.00-", "-500"),
            ("\u2212 5", "-5"),
        ],
    )
    def test_numbers(self, csv: Any, written: str, number: str) -> None:
        found = read(csv("Item;Qty", f'A;"{written}"'), "estimation_master")
        assert (found.column("quantity"), found.rejected) == ([Decimal(number)], [])

    @pytest.mark.parametrize("blank", ["-", "n/a", "N/A", "\u2013", "$ -", "k.A."])
    def test_what_people_write_for_nothing(self, csv: Any, blank: str) -> None:
        document = csv("Item;Qty;Cost code;Unit", f"A;{blank};{blank};-", "B;1;;")
        found = read(document, "estimation_master")
        # A free text is what it says.
        row = {"item_code": "A", "unit": "-"}
        assert (found.rows, found.rejected) == (
            [
                row if blank != "$ -" else row | {"cost_code": "$ -"},
                {"item_code": "B", "quantity": Decimal(1)},
            ],
            [],
        )

    def test_a_key_that_stands_for_nothing_is_missing(self, csv: Any) -> None:
        assert read(csv("Code;Rate", "n/a;5")).rejected == [(2, "Code", "is missing")]

    def test_in_a_column_of_percentages_other_numbers_are_doubtful(self, csv: Any) -> None:
        found = read(csv("Item;Qty;Markup", "A;1;10%", "B;1;12%", "C;1;12"), "estimation_master")
        assert found.column("markup") == [Decimal("0.1"), Decimal("0.12")]
        assert found.rejected[0][:2] == (4, "Markup")

    def test_dates_that_a_program_of_the_other_order_has_made_are_doubtful(self, xlsx: Any) -> None:
        """A list of the USA, opened where days come first: what it could not read stayed text."""
        rows = [["Badge", "From"], ["1", date(2025, 5, 1)], ["2", "01/13/2025"]]
        rows += [["3", date(2025, 3, 3)], ["4", datetime(2025, 2, 1, 8)], ["5", "2025-04-02"]]
        found = read(xlsx(one_sheet(*rows)), "crew_member")
        assert found.column("employee_no") == ["2", "3", "5"]
        assert [line for line, _, _ in found.rejected] == [2, 5]
        assert found.rejected[0][2].startswith("may have day and month exchanged")
        assert read(xlsx(one_sheet(*rows)), "crew_member", date_order="mdy").rejected == []
        rows.append(["6", date(2025, 5, 13)])
        assert read(xlsx(one_sheet(*rows)), "crew_member").rejected == []

    def test_columns_of_dates_that_contradict_each_other_settle_nothing(self, csv: Any) -> None:
        lines = ("No;From;To", "1;3/4/2025;12/31/2025", "2;4/3/2025;", "3;13/1/2025;")
        titles = ("Employee", *lines[0].split(";")[1:])
        found = read(csv(";".join(titles), *lines[1:]), "crew_member")
        assert found.column("employee_no") == ["3"]
        assert [(line, column) for line, column, _ in found.rejected] == [(2, "From"), (3, "From")]
        assert "2025-03-04 or 2025-04-03" in found.rejected[0][2]
        found = read(csv(";".join(titles), *lines[1:3]), "crew_member")
        assert found.column("valid_from") == [date(2025, 3, 4), date(2025, 4, 3)]

    def test_a_date_with_dots_and_its_month_first_settles_the_others(self, csv: Any) -> None:
        rows = ("1;03.04.2025;05.06.2025", "2;03.25.2025;", "3;2025-04-02;31.12.2025")
        found = read(csv("Badge;From;To", *rows[:2]), "crew_member")
        assert found.column("valid_from") == [date(2025, 3, 4), date(2025, 3, 25)]
        assert found.column("valid_to") == [date(2025, 5, 6), None]
        assert found.rejected == []
        german = read(csv("Badge;From;To", rows[0], rows[2]), "crew_member")
        assert german.column("valid_from") == [date(2025, 4, 3), date(2025, 4, 2)]
        both = read(csv("Badge;From;To", *rows, "4;25.03.2025;"), "crew_member")
        assert both.column("employee_no") == ["2", "3", "4"]
        assert [(line, column) for line, column, _ in both.rejected] == [(2, "From"), (2, "To")]
        assert both.rejected[0][2].startswith("can be read as 2025-03-04 or 2025-04-03")
        dmy = read(csv("Badge;From;To", *rows), "crew_member", date_order="dmy")
        assert dmy.column("valid_from") == [date(2025, 4, 3), date(2025, 4, 2)]

    def test_amounts_in_several_currencies_are_problems(self, csv: Any) -> None:
        rows = ("A;$1.50;1 EUR;1", "B;US$ 2.50;\u20ac2;", "C;\u20ac 3.00;3;", "D;(4.00 USD);CHF 4;")
        found = read(csv("Item;Rate;Material Cost;Qty", *rows), "estimation_master")
        assert found.column("item_code") == ["A", "B"]
        assert found.rejected == [
            (4, "Rate", "is in \u20ac, and most of its column is in USD"),
            (5, "Rate", "is negative"),
            (5, "Material Cost", "is in CHF, and most of its column is in \u20ac"),
        ]

    def test_the_currency_of_the_row_counts(self, csv: Any) -> None:
        rows = ("A;$1;USD", "B;2 \u20ac;eur", "C;SFr. 3;CHF", "D;$4;EUR", "E;\u00a35;")
        found = read(csv("Code;Price;Currency", *rows), "material")
        assert codes(found) == ["A", "B", "C"]
        assert found.rejected == [
            (5, "Price", "is in $, and the currency of its row is EUR"),
            (6, "Price", "is in \u00a3, and most of its column is in $"),
        ]

    def test_the_whole_column_decides(self, csv: Any) -> None:
        rows = [f"A{n};03/04/2025" for n in range(6_000)]
        found = read(csv("Employee;From", *rows, "B;25/04/2025"), "crew_member")
        assert found.rejected == []
        assert set(found.column("valid_from")[:-1]) == {date(2025, 4, 3)}

    def test_the_message_decides_where_the_column_does_not(self, csv: Any) -> None:
        file = csv("Employee;From", "1;03/04/2025", "2;05/06/2025")
        assert len(read(file, "crew_member").rejected) == 2
        days = read(file, "crew_member", date_order="mdy").column("valid_from")
        assert days == [date(2025, 3, 4), date(2025, 5, 6)]
        prices = csv("Code;Price", "A;1,234")
        assert read(prices, "material", decimal=",").column("price") == [Decimal("1.234")]
        assert read(prices, "material", decimal=".").column("price") == [1234]

    def test_what_contradicts_the_message_is_a_problem(self, csv: Any) -> None:
        found = read(csv("Code;Price", "A;1.234", "B;12.5"), "material", decimal=",")
        assert found.column("price") == [1234]
        assert found.rejected[0][:2] == (3, "Price")
