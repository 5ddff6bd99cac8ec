"""The countries that the schema comes with, as they were when it was made.

Migrations read them from a file, so that every database has the same ones, whenever it is made.
"""

import json
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).with_name("migrations") / "countries.tsv"
"""ISO 3166-1: numeric code, two letters, three letters, and names, the usual one first."""


def country_rows() -> list[dict[str, Any]]:
    """Rows of the table `countries`; spellings are codes and English names, as JSON."""
    return [_row(*line.split("\t")) for line in _FILE.read_text(encoding="utf-8").splitlines()]


def _row(number: str, alpha2: str, alpha3: str, listed: str) -> dict[str, Any]:
    names = listed.split("|")
    return {
        "id": int(number),
        "alpha2": alpha2,
        "alpha3": alpha3,
        "name": names[0],
        "spellings": json.dumps([alpha2, alpha3, *names], ensure_ascii=False),
    }
