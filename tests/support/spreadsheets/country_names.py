"""Writes the names that countries have in the languages of CLDR, as data for the product.

After an update of Babel:
`python -m tests.support.spreadsheets.country_names > adapters/types/country_names.tsv`.
To read all languages of CLDR takes seconds and 100 MB, which no worker has to spend.
"""

import json
import pickle
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from babel import localedata

from activities.spreadsheets.entities import own_spellings
from adapters.database.schema import country_rows
from workflows.spreadsheets.fields import value_key

_SHORTEST: Final = 4
"""Letters of a name in Latin script, so that it is mistaken for no code."""


def country_names() -> Iterator[str]:
    """A line for each country: number, codes, and names that mean no other country."""
    rows = {row["alpha2"]: row for row in country_rows()}
    owners: dict[str, set[str]] = {}
    own = {
        alpha2: set(map(value_key, (*json.loads(row["spellings"]), *own_spellings(row["id"]))))
        for alpha2, row in rows.items()
    }
    for alpha2, keys in own.items():
        for key in keys:
            owners.setdefault(key, set()).add(alpha2)
    names = {alpha2: dict[str, str]() for alpha2 in rows}
    for locale in sorted(localedata.locale_identifiers()):
        territories: Mapping[str, str] = _own_data(locale).get("territories", {})
        for alpha2 in rows.keys() & territories.keys():
            name = " ".join(territories[alpha2].split())
            key = value_key(name)
            if key and not (name.isascii() and len(name) < _SHORTEST):
                owners.setdefault(key, set()).add(alpha2)
                names[alpha2].setdefault(key, name)
    for alpha2, row in sorted(rows.items(), key=lambda each: each[1]["id"]):
        kept = sorted(name for key, name in names[alpha2].items() if owners[key] == {alpha2})
        yield f"{row['id']:03}\t{alpha2}\t{row['alpha3']}\t{'|'.join(kept)}"


def _own_data(locale: str) -> Mapping[str, Any]:
    """What CLDR has of a locale alone; read past the cache, in which others look for all of it."""
    return pickle.loads(Path(localedata.resolve_locale_filename(locale)).read_bytes())


if __name__ == "__main__":
    for line in country_names():
        sys.stdout.write(f"{line}\n")
