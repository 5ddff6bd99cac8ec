"""What countries are called, in all languages."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple


class Country(NamedTuple):
    """A country and its names, as far as no other country is called so.

    Attributes:
        number: ISO 3166-1 numeric code.
        alpha2: Code of two letters.
        alpha3: Code of three letters.
        names: What CLDR calls it.
    """

    number: int
    alpha2: str
    alpha3: str
    names: Sequence[str]


def countries() -> Iterator[Country]:
    """Every country; `tests/support/spreadsheets/country_names.py` writes the file."""
    file = files("adapters.types").joinpath("country_names.tsv")
    for line in file.read_text(encoding="utf-8").splitlines():
        number, alpha2, alpha3, names = line.split("\t")
        yield Country(int(number), alpha2, alpha3, names.split("|"))


@cache
def country_names() -> Mapping[str, Sequence[str]]:
    """Code of two letters to the other ways to write a country."""
    return MappingProxyType({each.alpha2: (each.alpha3, *each.names) for each in countries()})
