"""Which sheets of a workbook are read: all visible ones that hold the table, or the one named."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from domain.errors import InvalidDocument
from domain.imports.header import HEADER_WITHIN, TableHeader
from domain.imports.sideways import SIDEWAYS
from domain.tabular.rows import Cell
from domain.tabular.values import readable

_NAME_CHARACTERS: Final = 80
_NAMED: Final = 20


@dataclass(frozen=True, slots=True)
class FoundSheet:
    """A sheet, looked at from its top.

    Attributes:
        name: Its name; None: the only table of a text file.
        hidden: The user's program does not show it.
        top: Its first rows, with their line numbers.
        header: The header of the table that is looked for.
        why_not: Why there is none.
    """

    name: str | None
    hidden: bool
    top: Sequence[tuple[int, list[Cell]]]
    header: TableHeader | None = None
    why_not: str = ""

    @property
    def is_blank(self) -> bool:
        """Whether nothing stands below its header."""
        if self.header is None or len(self.top) >= HEADER_WITHIN:
            return False
        return self.top[-1][0] <= self.header.line


def choose_sheets(found: Sequence[FoundSheet]) -> list[FoundSheet]:
    """The sheets to read, in their order; a hidden one never by itself, nor a blank form.

    Raises:
        InvalidDocument: No visible sheet holds the table, or several do with different columns.
    """
    visible = [sheet for sheet in found if not sheet.hidden]
    fitting = [sheet for sheet in visible if sheet.header is not None]
    if not fitting:
        raise InvalidDocument(_none_fits(found, visible))
    fitting = [sheet for sheet in fitting if not sheet.is_blank] or fitting
    first, *others = fitting
    for other in others:
        _refuse_other_columns(first, other)
    return fitting


def fitting_instead(others: Sequence[FoundSheet]) -> str:
    """The end of a sentence about a sheet that was named and does not hold the table."""
    if not others:
        return ""
    return f"; another sheet holds it: {_names(others)}: retry with one of them as `sheet`"


def _none_fits(found: Sequence[FoundSheet], visible: Sequence[FoundSheet]) -> str:
    filled = [sheet for sheet in visible if sheet.top]
    hidden = [sheet for sheet in found if sheet.hidden and sheet.header is not None]
    closest = max(filled, key=_titles, default=visible[0] if visible else found[0])
    why = closest.why_not or f"sheet {_quoted(closest)} is hidden"
    others = [sheet for sheet in filled if sheet is not closest]
    if others:
        why += f"; nor does any other sheet fit: {_names(others)}"
    if hidden:
        why += f"; the hidden sheet {_names(hidden)} does: name it as `sheet` to have it read"
    return why


def _titles(sheet: FoundSheet) -> int:
    """How much of the required columns a sheet seems to have: the fewer it lacks, the more."""
    if SIDEWAYS in sheet.why_not:
        return 1
    return -sheet.why_not.partition(":")[0].count(",") if "lacks" in sheet.why_not else -1_000


def _refuse_other_columns(first: FoundSheet, other: FoundSheet) -> None:
    assert first.header is not None
    assert other.header is not None
    here, there = set(first.header.positions), set(other.header.positions)
    if here == there:
        return
    only = [
        f"only {_quoted(sheet)} has {', '.join(sorted(more))}"
        for sheet, more in ((first, here - there), (other, there - here))
        if more
    ]
    raise InvalidDocument(
        f"sheets {_quoted(first)} and {_quoted(other)} both hold this table, with different "
        f"columns ({'; '.join(only)}); name the one to read as `sheet`, and send the document "
        "once for each that is to be read"
    )


def conflict_between(
    first: str, second: str, count: int, lines: tuple[int, int]
) -> InvalidDocument:
    """What is said where two sheets hold the same keys with different values."""
    many = "1 key stands" if count == 1 else f"{count:,} keys stand"
    return InvalidDocument(
        f"{many} on sheets {first!r} and {second!r} with different values (lines {lines[0]} and "
        f"{lines[1]}, for one); "
        "name the sheet to read as `sheet`"
    )


def left_sheets(found: Sequence[FoundSheet], chosen: Sequence[FoundSheet]) -> list[str]:
    """Sheets that hold something and are not read, as a person finds them."""
    left = [sheet for sheet in found if sheet.top and sheet not in chosen]
    return [f"{_quoted(sheet)}{' (hidden)' if sheet.hidden else ''}" for sheet in left]


def _names(sheets: Sequence[FoundSheet]) -> str:
    names = ", ".join(map(_quoted, sheets[:_NAMED]))
    return names if len(sheets) <= _NAMED else f"{names} and {len(sheets) - _NAMED} more"


def _quoted(sheet: FoundSheet) -> str:
    return repr(readable(sheet.name, _NAME_CHARACTERS))
