"""Rows of a table that need no more judgement, as the lines of text that databases take."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from domain.imports.leading_zeros import code_fields
from domain.imports.plain_columns import NUMBER_DIGITS
from domain.imports.tables import SEQUENCE, TableSpec
from domain.tabular.columns import NULL
from domain.tabular.fields import ColumnKind
from domain.tabular.packed import PackedRows, text_of

KEY_CHARACTERS: Final = 500
"""Keys up to this length fit into an index, whatever their letters."""
FEWEST_ROWS: Final = 1_000
"""Rows from which on lines are worth their making: fewer go with the statement that writes them."""
_KNOWN: Final = 50_000
"""Texts of numbers and days of one column that are kept for the next rows."""
_BREAKS: Final = ("\t", "\r", NULL)
_TEXTS: Final = frozenset({ColumnKind.TEXT, ColumnKind.CODE, ColumnKind.CHOICE})


class RowPacker:
    """Packs converted columns, where a database can hold every value of them.

    Attributes:
        columns: Columns of the rows that come out: scope, natural key, all others.

    Args:
        spec: The table.
        scope: Values of the columns that all rows share, in their order.
        names: Columns that the rows have beside these.
    """

    def __init__(self, spec: TableSpec, scope: Sequence[str], names: Sequence[str]) -> None:
        self._scope = tuple(scope)
        self._key = spec.key
        self._codes = frozenset(code_fields(spec))
        self._own = (*spec.key, *(name for name in names if name not in spec.key))
        self._kinds = tuple(spec.by_name[name].kind for name in self._own)
        self.columns = (*spec.scope, *self._own)
        self._known: dict[str, dict[Any, str]] = {name: {} for name in self._own}

    def pack(self, values: Mapping[str, Sequence[Any]], lines: Sequence[int]) -> PackedRows | None:
        """Pack some rows.

        Args:
            values: Their columns by name, without refused cells.
            lines: Line of each.

        Returns:
            None where they are better written value by value.
        """
        if len(lines) < FEWEST_ROWS:
            return None
        columns: list[Sequence[str]] = []
        longest = sum(map(len, self._scope))
        for name, kind in zip(self._own, self._kinds, strict=True):
            if kind in _TEXTS:
                texts = self._texts(name, values[name])
                if texts is None:
                    return None
                longest += max(map(len, texts)) if name in self._key else 0
            else:
                texts = self._made(name, values[name])
            columns.append(texts)
        if longest > KEY_CHARACTERS:
            return None
        made = list(map("\t".join, zip(*columns, map(str, lines), strict=True)))
        made.sort()
        return PackedRows(self._scope, self._kinds, made, zero_led=False)

    def _texts(self, name: str, values: Sequence[str | None]) -> Sequence[str] | None:
        """Texts as they are; None: a line cannot hold one, or a code begins with a zero.

        Whether such a code is that of another row is asked of values.
        """
        absent = None in values
        joined = "\n".join(filter(None, values) if absent else values)  # type: ignore[arg-type]
        count = sum(map(bool, values)) if absent else len(values)
        if joined.count("\n") > max(count - 1, 0) or any(mark in joined for mark in _BREAKS):
            return None
        if name in self._codes and ("\n0" in joined or joined.startswith("0")):
            return None
        return [NULL if text is None else text for text in values] if absent else values  # type: ignore[return-value]

    def _made(self, name: str, values: Sequence[Any]) -> Sequence[str]:
        """The texts of numbers and days, which repeat."""
        known = self._known[name]
        if len(known) > _KNOWN:
            known.clear()
        digits = NUMBER_DIGITS if name == SEQUENCE else 0
        known.update((each, text_of(each).zfill(digits)) for each in set(values) - known.keys())
        return list(map(known.__getitem__, values))
