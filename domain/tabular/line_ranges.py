"""Lines of a table in few words: runs of them, the first ones named."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

RANGES_NAMED: Final = 6


def listed_lines(lines: Iterable[int]) -> str:
    """Rising line numbers as a person reads them: `5-9, 14, ...`."""
    named = [_named(first, last) for first, last in islice(_runs(lines), RANGES_NAMED + 1)]
    return ", ".join(named[:RANGES_NAMED] + ["..."] * (len(named) > RANGES_NAMED))


def _runs(lines: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = -1
    for line in lines:
        if line != last + 1:
            if last > 0:
                yield first, last
            first = line
        last = line
    if last > 0:
        yield first, last


def _named(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
