"""Tables that lie on their side: titles in a column, and one record in each column beside it."""

from collections.abc import Mapping, Sequence
from typing import Final

from domain.imports.header_words import title_text
from domain.imports.tables import TableSpec
from domain.imports.titles import meaning_of, plain_title
from domain.tabular.rows import Cell
from domain.tabular.values import column_letters

SIDEWAYS: Final = "seems to lie on its side"
_WITHIN: Final = 3
"""Columns that may hold the titles."""
_LEAST: Final = 2
_TITLES_NAMED: Final = 4


def sideways(
    top: Sequence[tuple[int, Sequence[Cell]]],
    spec: TableSpec,
    names: Mapping[str, str],
    fields: int,
) -> str | None:
    """What is said of a table whose titles stand below each other; None: it is not one.

    Most texts of a column name fields, those that are required and more than any row names.

    Args:
        top: The first rows of a sheet, with their line numbers.
        spec: What the table should hold.
        names: Normalised title to the field that the message says it means.
        fields: How many fields its best header row names.
    """
    required = {each.name for each in spec.fields if each.required}
    for place in range(_WITHIN):
        rows = [cells for _, cells in top if place < len(cells) and title_text(cells[place])]
        titles = [title_text(cells[place]) for cells in rows]
        known = {title: name for title in titles if (name := _field(title, spec, names))}
        named = set(known.values())
        beside = sum(any(map(title_text, cells[place + 1 :])) for cells in rows)
        enough = len(named) >= max(_LEAST, fields + 1) and 2 * len(known) > len(titles)
        if enough and required <= named and 2 * beside > len(titles):
            listed = ", ".join(map(repr, list(known)[:_TITLES_NAMED]))
            return (
                f"{SIDEWAYS}: column {column_letters(place)} holds the titles ({listed}), and "
                "each column beside it a record; transpose it (in Excel: copy it, Paste Special, "
                "Transpose), so that each record is a row, and send it again"
            )
    return None


def _field(title: str, spec: TableSpec, names: Mapping[str, str]) -> str | None:
    if (mapped := names.get(plain_title(title))) is not None:
        return mapped if mapped in spec.by_name else None
    meaning = meaning_of(title, spec)
    return None if meaning is None else meaning.field.name
