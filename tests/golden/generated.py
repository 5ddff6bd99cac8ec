"""Two hundred small tables, made from a seed: the same ones on every machine."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.golden.vocabulary import IMPORTS, ODD, SPREADSHEETS, Column
from tests.support.imports.documents import workbook

FILES: Final = 200
_OF_IMPORTS: Final = 13
"""Of twenty files; the others are spreadsheets."""
_ENCODINGS: Final = ("utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16", "cp850", "iso8859-15")
_DAYS: Final = ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")

Row = list[Any]


@dataclass
class Sheet:
    """A table on its way.

    Attributes:
        header: Titles.
        rows: Values below it.
        above: Rows above it.
        below: Rows below them.
        columns: That it began with.
    """

    header: Row
    rows: list[Row]
    above: list[Row] = field(default_factory=list[Row])
    below: list[Row] = field(default_factory=list[Row])
    columns: Sequence[Column] = ()

    def all(self) -> list[Row]:
        """Every row of the file."""
        return [*self.above, self.header, *self.rows, *self.below]


@dataclass(frozen=True)
class Generated:
    """One file.

    Attributes:
        name: Of the file.
        pipeline: That it is for.
        type: Document type or import type.
        write: Writes it into a folder.
    """

    name: str
    pipeline: str
    type: str
    write: Callable[[Path], Path]


def generated() -> list[Generated]:
    """Return all files."""
    return [_made(number) for number in range(FILES)]


def _made(number: int) -> Generated:
    random = Random(f"golden {number}")
    is_import = number % 20 < _OF_IMPORTS
    types: Mapping[str, Sequence[Column]] = IMPORTS if is_import else SPREADSHEETS
    type = list(types)[number % len(types)]
    sheet = _sheet(random, types[type])
    for change in random.sample(_CHANGES, random.randint(0, 4)):
        change(random, sheet)
    write, suffix = (_text(random, sheet), "csv")
    if random.random() < 0.45:
        write, suffix = _workbook(random, sheet), "xlsx"
    name = f"{number:03}-{type.lower()}.{suffix}"
    return Generated(
        name,
        "imports" if is_import else "spreadsheets",
        type,
        lambda folder: write(folder / name),
    )


def _sheet(random: Random, columns: Sequence[Column]) -> Sheet:
    used = [each for each in columns if each.needed or random.random() < 0.7]
    if random.random() < 0.5:
        random.shuffle(used)
    titles = [_title(random, each) for each in used]
    return Sheet(list(titles), _rows(random, used, 1), columns=used)


def _rows(random: Random, columns: Sequence[Column], first: int) -> list[Row]:
    numbers = range(first, first + random.randint(3, 12))
    return [[column.make(random, row) for column in columns] for row in numbers]


def _title(random: Random, column: Column) -> str:
    title = random.choice(column.titles)
    chance = random.random()
    if chance < 0.08:
        return title.upper()
    if chance < 0.14:
        return f"{title} *"
    if chance < 0.18:
        return f" {title}"
    # Nearly a title that is known.
    return title[:-2] + title[-1] if chance < 0.22 else title


def _odd_cells(random: Random, sheet: Sheet) -> None:
    for _ in range(random.randint(1, 4)):
        row = random.choice(sheet.rows)
        row[random.randrange(len(row))] = random.choice(ODD)


def _repeated_row(random: Random, sheet: Sheet) -> None:
    sheet.rows.append([*random.choice(sheet.rows)])


def _repeated_header(random: Random, sheet: Sheet) -> None:
    sheet.rows.insert(random.randrange(1, len(sheet.rows)), [*sheet.header])


def _total(random: Random, sheet: Sheet, more: int = 0) -> None:
    columns = list(zip(*(row for row in sheet.rows if len(row) == len(sheet.header)), strict=True))
    total: Row = [
        sum(cells) + more if all(isinstance(each, Decimal) for each in cells) else ""
        for cells in columns
    ]
    total[0] = random.choice(("Total", "Summe", "Gesamt:", ""))
    sheet.rows.append(total)


def _false_total(random: Random, sheet: Sheet) -> None:
    _total(random, sheet, more=1)


def _footers(random: Random, sheet: Sheet) -> None:
    width = len(sheet.header) - 1
    sheet.rows.insert(random.randrange(len(sheet.rows)), ["Page 1 of 2", *[""] * width])
    sheet.rows.append(["Page 2 of 2", *[""] * width])


def _heading(random: Random, sheet: Sheet) -> None:
    row: Row = [""] * len(sheet.header)
    row[random.randrange(len(row))] = random.choice(("Building A", "Herren", "see annex 3"))
    sheet.rows.insert(random.randrange(len(sheet.rows)), row)


def _blank_rows(random: Random, sheet: Sheet) -> None:
    sheet.rows.insert(random.randrange(len(sheet.rows)), [""] * len(sheet.header))


def _titles_above(random: Random, sheet: Sheet) -> None:
    for text in ("Project North", "Status: 2025-03-04", "")[: random.randint(1, 3)]:
        sheet.above.append([text])


def _remark_below(random: Random, sheet: Sheet) -> None:
    sheet.below += [[""], ["Prices without VAT; ask Meyer"]]


def _unknown_column(random: Random, sheet: Sheet) -> None:
    place = random.randrange(len(sheet.header) + 1)
    sheet.header.insert(place, random.choice(("Remark for us", "Internal", "", "Kostenträger")))
    for row in sheet.rows:
        row.insert(min(place, len(row)), random.choice(("x", "", 12, "to check")))


def _long_row(random: Random, sheet: Sheet) -> None:
    random.choice(sheet.rows).append(random.choice(("rest", "", 5)))


def _short_row(random: Random, sheet: Sheet) -> None:
    random.choice(sheet.rows).pop()


def _column_twice(random: Random, sheet: Sheet) -> None:
    place = random.randrange(len(sheet.header))
    sheet.header.append(sheet.header[place])
    for row in sheet.rows:
        row.append(row[place] if place < len(row) else "")


def _empty_keys(random: Random, sheet: Sheet) -> None:
    random.choice(sheet.rows)[0] = ""


def _title_of_two_rows(random: Random, sheet: Sheet) -> None:
    sheet.above.append(["Master data", *[""] * (len(sheet.header) - 2), "Figures"])


_CHANGES: Final[Sequence[Callable[[Random, Sheet], None]]] = (
    *(_odd_cells, _repeated_row, _repeated_header, _total, _false_total, _footers, _heading),
    *(_blank_rows, _titles_above, _remark_below, _unknown_column, _long_row, _short_row),
    *(_column_twice, _empty_keys, _title_of_two_rows),
)


def _text(random: Random, sheet: Sheet) -> Callable[[Path], Path]:
    has_comma = random.random() < 0.5
    delimiter = random.choice(";;\t|" if has_comma else ",,;\t")
    day, groups = random.choice(_DAYS), random.random() < 0.3
    encoding, end = random.choice(_ENCODINGS), random.choice(("\n", "\r\n"))
    lines = io.StringIO()
    writer = csv.writer(lines, delimiter=delimiter, lineterminator=end)
    for row in sheet.all():
        writer.writerow([_said(cell, day, has_comma=has_comma, groups=groups) for cell in row])
    # What a code page lacks is a question mark, as in the files of old programs.
    content = lines.getvalue().encode(encoding, "replace")

    def write(path: Path) -> Path:
        path.write_bytes(content)
        return path

    return write


def _said(cell: Any, day: str, *, has_comma: bool, groups: bool) -> str:
    match cell:
        case Decimal():
            text = f"{cell:,f}" if groups else f"{cell:f}"
            return text.translate(str.maketrans(",.", ".,")) if has_comma else text
        case date():
            return cell.strftime(day)
        case _:
            return str(cell)


def _workbook(random: Random, sheet: Sheet) -> Callable[[Path], Path]:
    is_typed, day = random.random() < 0.7, random.choice(_DAYS)
    has_comma = random.random() < 0.4

    def cells(row: Row) -> Row:
        if not is_typed:
            return [_said(cell, day, has_comma=has_comma, groups=False) for cell in row]
        return [float(cell) if isinstance(cell, Decimal) else cell for cell in row]

    sheets = {"Data": [cells(row) for row in sheet.all()]}
    hidden: list[str] = []
    chance = random.random()
    if chance < 0.15:
        header = sheet.header[: len(sheet.columns)]
        sheets["More"] = [header, *map(cells, _rows(random, sheet.columns, 30))]
    elif chance < 0.3:
        sheets = {"Cover": [["Delivery of 4 March"], ["Version", 3]], **sheets}
    elif chance < 0.4:
        sheets["Old"] = [cells(row) for row in sheet.all()[:-1]]
        hidden.append("Old")
    return lambda path: workbook(path, sheets, hidden=hidden)
