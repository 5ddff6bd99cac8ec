"""Titles that come close to a field without meaning it: a suggestion, never a guess."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from domain.imports.tables import TableSpec
from domain.tabular.fields import normalise

CLOSE: Final = 0.7
"""Share of letters in which a title has to agree with a name of the field."""


def nearest(missing: Sequence[str], titles: Sequence[str], spec: TableSpec) -> dict[str, str]:
    """The closest title to each field that no title means, where one comes close.

    Args:
        missing: Names of fields.
        titles: As they stand in the file.
        spec: What the table holds.
    """
    by_name = {normalise(title): title for title in titles if normalise(title)}
    found: dict[str, str] = {}
    for name in missing:
        for header in (normalise(name), *sorted(spec.by_name[name].headers)):
            if close := get_close_matches(header, by_name, 1, CLOSE):
                found[name] = by_name[close[0]]
                break
    return found


def suggestion(missing: Sequence[str], titles: Sequence[str], spec: TableSpec) -> str:
    """The same as the end of a sentence; empty where nothing comes close."""
    found = nearest(missing, titles, spec)
    if not found:
        return ""
    near = " and ".join(f"{title!r} comes close to {name}" for name, title in found.items())
    options = " ".join(f'--map "{title}={name}"' for name, title in found.items())
    return f"; {near}: retry with {options} if it is meant"
