"""The currencies that the amounts of one column name."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from workflows.shared.cells import PERCENT_SIGN, Cell, Signed
from workflows.shared.conversion import Flaw
from workflows.shared.currencies import currency_of, same_currency

CURRENCY: Final = "currency"
"""Field of a table that says the currency of each row."""


def count_currencies(cells: Iterable[Cell], found: Counter[str]) -> None:
    """Count the currencies that amounts name."""
    found.update(currency for cell in cells if (currency := _currency_of(cell)) is not None)


def usual_currency(found: Counter[str]) -> str | None:
    """The one that most of them name; None: they name none."""
    if not found:
        return None

    def weight(name: str) -> tuple[int, int, str]:
        alike = sum(count for other, count in found.items() if same_currency(name, other))
        return alike, found[name], name

    return max(found, key=weight)


def _currency_of(cell: Cell) -> str | None:
    if isinstance(cell, Signed):
        return cell.sign if cell.sign != PERCENT_SIGN else None
    return currency_of(cell) if isinstance(cell, str) else None


def conflicts(
    cells: Sequence[Cell], usual: str, rows: Sequence[Any] | None
) -> Iterator[tuple[int, Flaw]]:
    """Amounts that name another currency, by index of their row.

    Args:
        cells: Of the column, as read.
        usual: The currency that most of the column name.
        rows: Currency of each row, None where it has none; None: the table has no such column.
    """
    for i, cell in enumerate(cells):
        own = _currency_of(cell)
        if own is None:
            continue
        named = rows[i] if rows is not None else None
        if isinstance(named, str):
            if not same_currency(own, named.strip().upper()):
                yield i, Flaw(f"is in {own}, and the currency of its row is {named}")
        elif not same_currency(own, usual):
            yield i, Flaw(f"is in {own}, and most of its column is in {usual}", returns=True)
