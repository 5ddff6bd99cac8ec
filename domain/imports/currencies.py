"""Amounts whose currency is another one than that of their column or of their row."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from domain.tabular.conversion import Flaw
from domain.tabular.habits import currency_of
from domain.tabular.rows import Cell

CURRENCY: Final = "currency"
"""Field of a table that says the currency of each row."""
_MEANT: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        "$": frozenset(("USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN")),
        "\u20ac": frozenset(("EUR",)),
        "\u00a3": frozenset(("GBP", "EGP")),
        "\u00a5": frozenset(("JPY", "CNY")),
        "\u20b9": frozenset(("INR",)),
        "\u20bd": frozenset(("RUB",)),
        "KR": frozenset(("NOK", "SEK", "DKK")),
    }
)
"""Sign to what it may stand for."""
_SPELLED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "US$": "USD",
        "C$": "CAD",
        "CA$": "CAD",
        "A$": "AUD",
        "AU$": "AUD",
        "HK$": "HKD",
        "NZ$": "NZD",
        "FR": "CHF",
        "SFR": "CHF",
        "RMB": "CNY",
        "RS": "INR",
    }
)


def count_currencies(texts: Sequence[str], found: Counter[str]) -> None:
    """Count the currencies that texts of amounts name."""
    found.update(currency for text in texts if (currency := currency_of(text)) is not None)


def usual_currency(found: Counter[str]) -> str | None:
    """The one that most of them name; None: they name none."""
    if not found:
        return None

    def weight(name: str) -> tuple[int, int, str]:
        alike = sum(count for other, count in found.items() if _same(name, other))
        return alike, found[name], name

    return max(found, key=weight)


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
        own = currency_of(cell) if isinstance(cell, str) else None
        if own is None:
            continue
        named = rows[i] if rows is not None else None
        if isinstance(named, str):
            if not _same(own, named.strip().upper()):
                yield i, Flaw(f"is in {own}, and the currency of its row is {named}")
        elif not _same(own, usual):
            yield i, Flaw(f"is in {own}, and most of its column is in {usual}", returns=True)


def _same(one: str, other: str) -> bool:
    one, other = _SPELLED.get(one, one), _SPELLED.get(other, other)
    return one == other or other in _MEANT.get(one, ()) or one in _MEANT.get(other, ())
