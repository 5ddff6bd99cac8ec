"""The spreadsheet of rejected rows: the user's own rows, ready to correct and send again."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

import xlsxwriter
from xlsxwriter.worksheet import Worksheet

from adapters.files import limits
from adapters.files.tables.workbook_options import row_by_row
from contracts.problems import Problem
from domain.tabular.rows import LEFT_OUT_SHEET, MEMORY_SHEET, Cell, RejectedRow, SkippedTable

WHAT_IS_WRONG: Final = "what is wrong"
"""Header of the first column; a reader of the report leaves this column out."""

COMMENTS: Final = 50_000
"""Comments of one report: they are kept in memory until all rows are written."""

_COMMENT_CHARACTERS = 500
_LONGEST_TEXT = 32_767  # of a cell, in Excel
_CUT = " [cut: too long for a spreadsheet]"
_EXACT = 10**15  # beyond it Excel changes digits
_FIRST_DAY = date(1900, 3, 1)  # before it, Excel's calendar is a day off


class XlsxReportWriter:
    """Writes reports as XLSX; a `ReportWriter`."""

    def write(
        self,
        target: Path,
        header: Sequence[str],
        rows: Iterator[RejectedRow],
        *,
        comments: bool = False,
        memory: Sequence[Sequence[str]] = (),
        left_out: Sequence[SkippedTable] = (),
    ) -> None:
        """Write the header, then a row for each rejected one; memory stays bounded.

        A worksheet that is full is followed by another with the same header. Text stays text,
        whatever it looks like; a number that a spreadsheet would round is written as text.
        Problems beyond the first `COMMENTS` stand in the first column only.
        """
        with xlsxwriter.Workbook(str(target), row_by_row(target.parent)) as workbook:
            bold = workbook.add_format({"bold": True})
            wrong = workbook.add_format({"font_color": "#9C0006", "text_wrap": True})
            writer = _Cells(
                workbook.add_format({"num_format": "yyyy-mm-dd"}),
                workbook.add_format({"num_format": "yyyy-mm-dd hh:mm:ss.000"}),
            )
            notes = _Comments(header, COMMENTS if comments else 0)
            sheet: Worksheet | None = None
            line = 0
            for row in rows:
                if sheet is None or line == limits.ROWS:
                    sheet = self._new_sheet(workbook, bold, header)
                    line = 1
                sheet.write_string(line, 0, fitting(_what_is_wrong(row)), wrong)
                for column, value in enumerate(row.cells, start=1):
                    writer.write(sheet, line, column, value)
                notes.write(sheet, line, row.problems)
                line += 1
            if sheet is None:
                self._new_sheet(workbook, bold, header)
            sheet, line = None, 0
            for titles, skipped in left_out:
                sheet = sheet or self._new_sheet(workbook, bold, titles, LEFT_OUT_SHEET)
                _write_titles(sheet, line, titles, bold)
                for row in skipped:
                    line += 1
                    sheet.write_string(line, 0, fitting(_why_skipped(row)), wrong)
                    for column, value in enumerate(row.cells, start=1):
                        writer.write(sheet, line, column, value)
                line += 1
            if memory:
                self._remember(workbook, memory)

    def _remember(self, workbook: Any, memory: Sequence[Sequence[str]]) -> None:
        sheet: Worksheet = workbook.add_worksheet(MEMORY_SHEET)
        sheet.very_hidden()
        for line, cells in enumerate(memory):
            for column, text in enumerate(cells):
                sheet.write_string(line, column, fitting(text))

    def _new_sheet(
        self, workbook: Any, bold: Any, header: Sequence[str], name: str | None = None
    ) -> Worksheet:
        sheet: Worksheet = workbook.add_worksheet(name)
        sheet.set_column(0, 0, 60)
        sheet.freeze_panes(1, 1)
        _write_titles(sheet, 0, header, bold)
        return sheet


def _write_titles(sheet: Worksheet, line: int, titles: Sequence[str], bold: Any) -> None:
    for column, title in enumerate((WHAT_IS_WRONG, *titles)):
        sheet.write_string(line, column, fitting(title), bold)


def _why_skipped(row: RejectedRow) -> str:
    """Return the place of a row and the reason."""
    place = "" if row.problems[0].sheet else f"line {row.line}: "
    return f"{place}{_what_is_wrong(row)}"


class _Cells:
    """Writes one value with the type it was read with."""

    def __init__(self, date_format: Any, datetime_format: Any) -> None:
        self._date_format = date_format
        self._datetime_format = datetime_format

    def write(self, sheet: Worksheet, line: int, column: int, value: Cell) -> None:
        match value:
            case None | "":
                return
            case bool():
                sheet.write_boolean(line, column, value)
            case int() | float() if -_EXACT < value < _EXACT:
                sheet.write_number(line, column, value)
            case datetime() if value.date() >= _FIRST_DAY:
                sheet.write_datetime(line, column, value, self._datetime_format)
            case date() if type(value) is date and value >= _FIRST_DAY:
                midnight = datetime(value.year, value.month, value.day)
                sheet.write_datetime(line, column, midnight, self._date_format)
            case _:
                sheet.write_string(line, column, fitting(str(value)))


class _Comments:
    """Writes problems onto the cells they are about."""

    def __init__(self, header: Sequence[str], most: int) -> None:
        # The first of two columns of one title is the one that the problems mean.
        self._places = {title: column for column, title in reversed([*enumerate(header, start=1)])}
        self._left = most

    def write(self, sheet: Worksheet, line: int, problems: Sequence[Problem]) -> None:
        by_column: dict[int, list[str]] = {}
        for problem in problems:
            if problem.column in self._places:
                by_column.setdefault(self._places[problem.column], []).append(problem.reason)
        for column, reasons in by_column.items():
            if self._left == 0:
                return
            self._left -= 1
            text = "; ".join(reasons)[:_COMMENT_CHARACTERS]
            sheet.write_comment(line, column, text, {"author": "docflow"})


def fitting(text: str) -> str:
    """A text as far as a cell of Excel holds it; one that is cut says so."""
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - len(_CUT)] + _CUT


def _what_is_wrong(row: RejectedRow) -> str:
    shown = "; ".join(
        f"{problem.column}: {problem.reason}" if problem.column else problem.reason
        for problem in row.problems
    )
    mark = next((problem.mark for problem in row.problems if problem.mark), None)
    place = next((f"{each.sheet!r} line {each.line}: " for each in row.problems if each.sheet), "")
    return f"{place}{shown}" if mark is None else f"{place}{shown} [{mark}]"
