"""What the columns of a spreadsheet mean, as far as their headers show."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from contracts.spreadsheets import COLUMNS, Alternative, ColumnMapping, MappingStatus
from domain.spreadsheets.column_suggestions import ColumnSuggestions, FieldSuggestion
from domain.spreadsheets.entities import EXACT, REMEMBERED, SPELLING, SUGGESTIONS
from domain.spreadsheets.evidence import evidence
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.match_keys import header_key
from domain.tabular.fields import ColumnKind
from domain.tabular.values import column_letters

_UNNAMED: Final = re.compile(r"Column [A-Z]{1,3}")
_HEADER_CHARACTERS: Final = 200
MAILS: Final = 0.97
"""A column of mail addresses, whatever it is called."""
_BEFORE: Final = "decided before"
_LEFT_OUT_BEFORE: Final = "left out before"


class _Claim(NamedTuple):
    """A column's claim to a field."""

    score: float
    place: int
    field: int
    why: str = ""


def column_name(index: int) -> str:
    """What a column without a header is called: `Column F` for index 5."""
    return f"Column {column_letters(index)}"


def match_columns(
    headers: Sequence[tuple[int, str]],
    fields: Sequence[SheetField],
    remembered: Mapping[str, str | None],
    samples: Sequence[Sequence[str]] = (),
) -> tuple[ColumnMapping, ...]:
    """Find out what columns mean: by name, by other names, by earlier decisions, by mail addresses.

    Likeness never decides, it only suggests. No two columns get one field: the better match has
    it, of equals the first, and the other column has it as a suggestion. What people left out
    before is left out again, unless a required field would be without a column.

    Args:
        headers: Place and header of each column, from left to right; ghost columns left out.
        fields: Fields of the import type, custom lists included.
        remembered: Header to field, of what people of the organisation decided before; None for
            a column that they left out.
        samples: Distinct values of each column, as a person sees them.
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
    ignored = _left_out(headers, fields, memory, claims)
    taken: dict[int, _Claim] = {}
    given: dict[int, _Claim] = {}
    for claim in claims:
        if claim.field not in given and claim.place not in {*taken, *ignored}:
            taken[claim.place] = given[claim.field] = claim
    for claim in _claims_in_company(headers, fields, given, {*taken, *ignored}):
        taken[claim.place] = given[claim.field] = claim
    values = [*samples, *((),) * (len(headers) - len(samples))]
    for claim in _claims_of_mails(values, fields, given, {*taken, *ignored}):
        taken[claim.place] = given[claim.field] = claim
    suggested = _suggested(
        ColumnSuggestions(fields),
        {
            place: (_words(header), values[place])
            for place, (_, header) in enumerate(headers)
            if place not in taken and place not in ignored
        },
        {fields[number].name for number in given},
    )
    # The ids stay below their limit, however far to the right a lonely column stands.
    sparse = any(index >= COLUMNS for index, _ in headers)
    mappings: list[ColumnMapping] = []
    for place, (index, header) in enumerate(headers):
        claim = taken.get(place)
        own = [each for each in claims if each.place == place]
        mappings.append(
            ColumnMapping(
                id=place + 1 if sparse else index + 1,
                index=index,
                header=header[:_HEADER_CHARACTERS],
                alternatives=_alternatives(fields, claim, own, suggested.get(place, ())),
                **_meaning(fields, claim, ignored.get(place)),
            )
        )
    return tuple(mappings)


def _words(header: str) -> str:
    """A header, "" for a column that has none."""
    return "" if _UNNAMED.fullmatch(header) else header


def _meaning(
    fields: Sequence[SheetField], claim: _Claim | None, ignored: str | None
) -> Mapping[str, Any]:
    """What is known of a column: target, status, confidence and why."""
    if claim is not None:
        return {
            "target": fields[claim.field].name,
            "status": MappingStatus.AUTO_MATCHED,
            "confidence": claim.score,
            "why": claim.why,
        }
    if ignored is not None:
        return {"status": MappingStatus.IGNORED, "confidence": REMEMBERED, "why": ignored}
    return {}


def _left_out(
    headers: Sequence[tuple[int, str]],
    fields: Sequence[SheetField],
    memory: Mapping[str, str | None],
    claims: Sequence[_Claim],
) -> dict[int, str]:
    """Places of columns that people left out before, and why they are left out again."""
    places = [
        place
        for place, (_, header) in enumerate(headers)
        if header_key(header) in memory and memory[header_key(header)] is None
    ]
    others = {claim.field for claim in claims if claim.place not in places}
    needed = {
        claim.place
        for claim in claims
        if fields[claim.field].required and claim.field not in others
    }
    return {place: _LEFT_OUT_BEFORE for place in places if place not in needed}


def _claims(
    place: int, header: str, fields: Sequence[SheetField], memory: Mapping[str, str | None]
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
            yield _Claim(REMEMBERED, place, number, _BEFORE)


def _claims_in_company(
    headers: Sequence[tuple[int, str]],
    fields: Sequence[SheetField],
    given: Mapping[int, _Claim],
    taken: Collection[int],
) -> Iterator[_Claim]:
    """Claims of headers that mean a field only where another field has a column, or has none."""
    there = {fields[number].name for number in given}
    for number, field in enumerate(fields):
        for place, (_, header) in enumerate(headers):
            if number in given or place in taken:
                continue
            key = header_key(header)
            alone = field.either not in there and key in field.headers_instead
            if alone or field.headers_beside.get(key) in there:
                yield _Claim(SPELLING, place, number)
                break


def _claims_of_mails(
    samples: Sequence[Sequence[str]],
    fields: Sequence[SheetField],
    given: Mapping[int, _Claim],
    taken: Collection[int],
) -> Iterator[_Claim]:
    """The claim of the only column of mail addresses, where no header has claimed their field."""
    for number, field in enumerate(fields):
        if field.kind is not ColumnKind.MAIL or number in given:
            continue
        found = [
            _Claim(MAILS, place, number, shown.words)
            for place, values in enumerate(samples)
            if place not in taken and (shown := evidence(field, values)) and shown.telling
        ]
        if len(found) == 1:
            yield found[0]


def _suggested(
    suggest: ColumnSuggestions,
    columns: Mapping[int, tuple[str, Sequence[str]]],
    given: Collection[str],
) -> Mapping[int, Sequence[FieldSuggestion]]:
    """What columns probably mean, by place: no field that has a column, and none for two."""
    found = {
        place: [each for each in suggest(header, values) if each.field not in given]
        for place, (header, values) in columns.items()
    }
    best: dict[str, list[float]] = {}
    for each in (one for several in found.values() for one in several):
        best.setdefault(each.field, []).append(each.score)
    return {
        place: [
            each
            for each in several
            if each.score == max(best[each.field]) and best[each.field].count(each.score) == 1
        ]
        for place, several in found.items()
    }


def _alternatives(
    fields: Sequence[SheetField],
    claim: _Claim | None,
    claims: Sequence[_Claim],
    suggestions: Sequence[FieldSuggestion],
) -> tuple[Alternative, ...]:
    """What a column may mean as well: fields that another column has, and what is likely."""
    found = {
        each.field: Alternative(name=each.field, score=each.score, why=each.why)
        for each in suggestions
    }
    for each in claims:
        name = fields[each.field].name
        if each is not claim:
            found[name] = Alternative(name=name, score=each.score, why=each.why)
    best = sorted(found.values(), key=lambda each: -each.score)
    return tuple(best[:SUGGESTIONS])
