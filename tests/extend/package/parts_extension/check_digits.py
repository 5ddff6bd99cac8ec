"""A check of rows: the last digit of an EAN follows from the others."""

from collections.abc import Iterator, Mapping
from typing import Any


def check_ean(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Say what is wrong with the EAN of a row."""
    ean = values["ean"]
    if ean is None:
        return
    if len(ean) != 13 or not ean.isdecimal():
        yield "ean", "has not the 13 digits of an EAN"
    elif sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(ean)) % 10:
        yield "ean", "has a wrong check digit; compare it with the label"
