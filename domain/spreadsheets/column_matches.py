"""What the columns of a spreadsheet mean, as far as their headers show."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from contracts.spreadsheets import COLUMNS, Alternative, ColumnMapping, MappingStatus
from domain.spreadsheets.entities import EXACT, REMEMBERED, SPELLING, SUGGESTIONS
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.match_keys import header_key
from domain.spreadsheets.similarity import Lookalikes
from domain.tabular.fields import normalise
from domain.tabular.values import column_letters

_UNNAMED: Final = re.compile(r"Column [A-Z]{1,3}")
_HEADER_CHARACTERS: Final = 200


class _Claim(NamedTuple):
    """A column's claim to a field."""

    score: float
    place: int
    field: int


def column_name(index: int) -> str:
    """What a column without a header is called: `Column F` for index 5."""
    return f"Column {column_letters(index)}"


def match_columns(
    headers: Sequence[tuple[int, str]],
    fields: Sequence[SheetField],
    remembered: Mapping[str, str],
) -> tuple[ColumnMapping, ...]:
    """Find out what columns mean: by name, by other names, by earlier decisions.

    Likeness never decides, it only suggests. No two columns get one field: the better match has
    it, of equals the first, and the other column has it as a suggestion.

    Args:
        headers: Place and header of each column, from left to right; ghost columns left out.
        fields: Fields of the import type, custom lists included.
        remembered: Header to field, of what people of the organisation decided before.
    """
    memory = {header_key(header): target for header, target in remembered.items()}
    claims = sorted(
        (
            claim
            for place, (_, header) in enumerate(headers)
            for claim in _claims(place, header, fields, memory)
        ),
        key=lambda claim: (-claim.score, claim.place, claim.field),
    )
    taken: dict[int, _Claim] = {}
    given: dict[int, _Claim] = {}
    for claim in claims:
        if claim.field not in given and claim.place not in taken:
            taken[claim.place] = given[claim.field] = claim
    for claim in _claims_in_company(headers, fields, given, taken):
        taken[claim.place] = given[claim.field] = claim
    likeness = _Likeness(fields)
    # The ids stay below their limit, however far to the right a lonely column stands.
    sparse = any(index >= COLUMNS for index, _ in headers)
    return tuple(
        _mapping(
            place + 1 if sparse else index + 1,
            index,
            header,
            fields,
            taken.get(place),
            [claim for claim in claims if claim.place == place],
            likeness(header),
        )
        for place, (index, header) in enumerate(headers)
    )


def _claims(
    place: int, header: str, fields: Sequence[SheetField], memory: Mapping[str, str]
) -> Iterator[_Claim]:
    if _UNNAMED.fullmatch(header):
        return
    key = header_key(header)
    for number, field in enumerate(fields):
        if key in field.own_headers:
            yield _Claim(EXACT, place, number)
        elif key in field.other_headers:
            yield _Claim(SPELLING, place, number)
        elif memory.get(key) == field.name:
            yield _Claim(REMEMBERED, place, number)


def _claims_in_company(
    headers: Sequence[tuple[int, str]],
    fields: Sequence[SheetField],
    given: Mapping[int, _Claim],
    taken: Mapping[int, _Claim],
) -> Iterator[_Claim]:
    """Claims of headers that mean a field only where another field has a column."""
    there = {fields[number].name for number in given}
    for number, field in enumerate(fields):
        for place, (_, header) in enumerate(headers):
            free = number not in given and place not in taken
            if free and field.headers_beside.get(header_key(header)) in there:
                yield _Claim(SPELLING, place, number)


def _mapping(
    id: int,
    index: int,
    header: str,
    fields: Sequence[SheetField],
    claim: _Claim | None,
    claims: Sequence[_Claim],
    scores: dict[str, float],
) -> ColumnMapping:
    scores.update((fields[each.field].name, each.score) for each in claims)
    if claim is not None:
        scores.pop(fields[claim.field].name, None)
    best = sorted(scores.items(), key=lambda scored: -scored[1])[:SUGGESTIONS]
    return ColumnMapping(
        id=id,
        index=index,
        header=header[:_HEADER_CHARACTERS],
        target=None if claim is None else fields[claim.field].name,
        status=MappingStatus.UNMATCHED if claim is None else MappingStatus.AUTO_MATCHED,
        confidence=0.0 if claim is None else claim.score,
        alternatives=tuple(Alternative(name=name, score=score) for name, score in best),
    )


class _Likeness:
    """How much a header looks like each field, where that is worth showing."""

    def __init__(self, fields: Sequence[SheetField]) -> None:
        wordings = [(form, field.name) for field in fields for form in field.wordings]
        self._names = [name for _, name in wordings]
        self._lookalikes = Lookalikes([form for form, _ in wordings])

    def __call__(self, header: str) -> dict[str, float]:
        scores: dict[str, float] = {}
        if not _UNNAMED.fullmatch(header):
            for place, score in self._lookalikes.most_alike(normalise(header), None):
                scores.setdefault(self._names[place], score)
        return scores
