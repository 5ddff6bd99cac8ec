"""The rows of a header: two that give titles together, and one that numbers columns."""

from collections.abc import Callable, Collection, Mapping, Sequence

from workflows.shared.cells import TITLE_CHARACTERS, Cell, is_blank, readable
from workflows.shared.fields import NUMBERS, ColumnKind, FieldSpec
from workflows.shared.titles import is_unit_cell, plain_title


def title_text(cell: Cell) -> str:
    """A cell as a title, in one line."""
    return readable(cell, TITLE_CHARACTERS) if cell is not None else ""


def title_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that may be titles, as texts: a whole number may be a year."""
    return [
        cell if isinstance(cell, str) else title_text(cell) if type(cell) is int else None
        for cell in cells
    ]


def may_be_second(cells: Sequence[Cell]) -> bool:
    """Return whether a row may be the second one of a header."""
    return all(isinstance(cell, str | None) for cell in cells)


def without_blanks(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a second row of titles: a dash there is no unit."""
    return [None if is_blank(cell) else cell for cell in cells]


def joined_titles(
    upper: Sequence[Cell],
    lower: Sequence[Cell],
    is_known: Callable[[str], bool] = lambda title: True,
) -> list[Cell]:
    """Titles of two rows: both together, the lower or the upper one, whichever means a field.

    Args:
        upper: Cells of the first row.
        lower: Cells of the second row.
        is_known: Whether a title means a field.
    """
    width = max(len(upper), len(lower))
    titles: list[Cell] = []
    group = ""
    for position in range(width):
        above = title_text(upper[position]) if position < len(upper) else ""
        below = title_text(lower[position]) if position < len(lower) else ""
        # A title over several columns stands in the first of them.
        group = above or (group if below else "")
        unit = bool(below) and is_unit_cell(below)
        both = f"{group} ({below.strip('()[]')})" if unit else f"{group} {below}".strip()
        choices = [both] if unit and above else [both, below, above]
        titles.append(next((each for each in choices if each and is_known(each)), both or None))
    return titles


def adds_titles(
    titles: Sequence[str],
    meant: Mapping[int, FieldSpec],
    key: Collection[str],
    above: Sequence[Cell],
    below: Sequence[Cell],
) -> bool:
    """Return whether a second row adds to the titles of a header and says nothing that data would.

    Below a column that is required, a title stands or nothing.

    Args:
        titles: Of both rows together.
        meant: Place of each title that means a field, and the field.
        key: Fields that name a row.
        above: Cells of the first row.
        below: Cells of the second row.
    """
    filled = {place: text for place, cell in enumerate(below) if (text := title_text(cell))}
    for place, field in meant.items():
        text = filled.get(place, "")
        own = titles[place] != (title_text(above[place]) if place < len(above) else "")
        is_unit = is_unit_cell(text)
        # In the column of a code or name that is the key, a unit or currency is a value.
        if is_unit and field.name in key and field.kind not in (*NUMBERS, ColumnKind.DURATION):
            return False
        is_title = is_unit or plain_title(text) in plain_title(titles[place])
        if field.required and text and not (own and is_title):
            return False
    adding = [
        place
        for place, text in filled.items()
        if is_unit_cell(text)
        or (place in meant and plain_title(text) in plain_title(titles[place]))
    ]
    return bool(filled) and 2 * len(adding) >= len(filled)


def counts_columns(cells: Sequence[Cell], fields: int) -> bool:
    """Return whether a row numbers the columns, at least as many as mean a field."""
    numbers = [_integer(cell) for cell in cells if cell is not None]
    counted = len(numbers) >= 3 and numbers == list(range(1, len(numbers) + 1))
    return counted and len(numbers) >= fields


def _integer(cell: Cell) -> int | None:
    if isinstance(cell, str):
        text = cell.strip("() .")
        return int(text) if text.isdecimal() and len(text) < 4 else None
    return cell if isinstance(cell, int) and not isinstance(cell, bool) else None
