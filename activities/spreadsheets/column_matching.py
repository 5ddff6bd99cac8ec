"""What the columns of a spreadsheet mean, as far as their headers and values show."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from activities.spreadsheets.entities import (
    EXACT,
    POSSIBLE_FROM,
    REMEMBERED,
    SPELLING,
    SUGGESTED_FROM,
    SUGGESTIONS,
    Lookalikes,
    names_country,
)
from workflows.shared.cells import (
    TITLE_CHARACTERS,
    Cell,
    column_letters,
    count_filled,
    is_blank,
    is_filled,
    readable,
    titles_in_columns,
)
from workflows.shared.conversion import is_mail, read_cells
from workflows.shared.durations import read_duration
from workflows.shared.errors import InvalidDocument
from workflows.shared.fields import ColumnKind, FieldSpec, normalise, squash, unit_signs
from workflows.shared.header_rows import (
    adds_titles,
    counts_columns,
    joined_titles,
    may_be_second,
    title_cells,
    title_text,
    without_blanks,
)
from workflows.shared.notations import (
    Notation,
    Unreadable,
    date_readings_of,
    number_readings_of,
)
from workflows.shared.titles import field_named, field_without_unit, names_other_unit
from workflows.spreadsheets.fields import header_key
from workflows.spreadsheets.mappings import (
    COLUMNS,
    GROUNDS,
    Alternative,
    ColumnMapping,
    MappingStatus,
)

_MOSTLY: Final = 0.8
_SEVERAL: Final = 2

_PHONE: Final = re.compile(r"(?:\+|0)[\d\s()/.\-]{7,20}")
_NUMBER: Final = re.compile(r"[\d\s.,:/\-]+")


class Evidence(NamedTuple):
    """What speaks for a field, or against it."""

    share: float
    """Values that the field can take, of those looked at."""
    telling: bool
    """Hardly any other field has values like these."""
    words: str
    """For people: `5 of 5 values are mail addresses`; "" where nothing speaks for the field."""


def evidence(field: FieldSpec, samples: Sequence[str]) -> Evidence | None:
    """What values say about a field; None: nothing.

    Args:
        field: The field.
        samples: Distinct values of the column, as a person sees them.
    """
    values = [text for text in samples if not is_blank(text)]
    if not values:
        return None
    for kind in _kinds(field):
        count = sum(map(kind.fits, values))
        share = count / len(values)
        telling = kind.telling and share >= _MOSTLY and len(values) >= kind.values
        words = f"{count} of {len(values)} values are {kind.title}" if share >= _MOSTLY else ""
        return Evidence(share, telling, words)
    if field.kind in (ColumnKind.TEXT, ColumnKind.ENTITY):
        # Names are neither addresses nor numbers.
        odd = sum(map(_is_no_name, values))
        return Evidence(1 - odd / len(values), False, "")
    return None


class _Kind(NamedTuple):
    """Values of one kind.

    Attributes:
        title: For people.
        fits: Whether a text is one.
        telling: Hardly any other field has values like these.
        values: How many different ones tell something.
    """

    title: str
    fits: Callable[[str], bool]
    telling: bool = False
    values: int = _SEVERAL


def _kinds(field: FieldSpec) -> Iterator[_Kind]:
    match field.kind:
        case ColumnKind.MAIL:
            yield _Kind("mail addresses", is_mail, True, 1)
        case ColumnKind.DATE:
            yield _Kind("dates", partial(_is_date, field))
        case ColumnKind.DURATION:
            yield _Kind("times", _is_duration)
        case ColumnKind.INTEGER | ColumnKind.DECIMAL | ColumnKind.PLACE | ColumnKind.MONEY:
            yield _Kind("numbers", _is_number)
        case ColumnKind.CHOICE:
            known = field.choice_of
            title = f"a {field.title.lower()}"
            yield _Kind(title, partial(_is_choice, known), True)
        case ColumnKind.ENTITY if field.resolver == "countries":
            yield _Kind("countries", names_country, True, 3)
        case ColumnKind.PHONE | ColumnKind.CODE if (
            field.kind is ColumnKind.PHONE or field.column == "phone"
        ):
            yield _Kind("phone numbers", _is_phone, True)
        case ColumnKind.BOOLEAN:
            yield _Kind("yes or no", partial(_is_read, field))
        case ColumnKind.TIME | ColumnKind.TIMESTAMP:
            yield _Kind("times", partial(_is_read, field))
        case _:
            pass


def _is_choice(known: Mapping[str, str], text: str) -> bool:
    return normalise(text) in known


def _is_date(spec: FieldSpec, text: str) -> bool:
    return bool(date_readings_of(spec, text))


def _is_number(text: str) -> bool:
    return bool(number_readings_of(text))


def _is_duration(text: str) -> bool:
    try:
        return read_duration(text, ("s",)) > 0
    except Unreadable:
        return False


def _is_read(field: FieldSpec, text: str) -> bool:
    # Some order of day and month is enough here.
    return any(
        not read_cells(field, [text], order)[1]
        for order in (Notation.DAY_FIRST, Notation.MONTH_FIRST)
    )


def _is_phone(text: str) -> bool:
    return _PHONE.fullmatch(text) is not None


def _is_no_name(text: str) -> bool:
    return "@" in text or _NUMBER.fullmatch(text) is not None


_ASIDES: Final = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\*")
_EITHER: Final = re.compile(r"[/|&]|\bor\b|\boder\b|\bu\.|\bund\b|\band\b", re.IGNORECASE)
_OWNERS: Final = frozenset(
    (
        *("athlete", "athletes", "child", "childs", "children", "home", "member", "members", "own"),
        *("parent", "parents", "participant", "participants", "person", "personal", "private"),
        *("runner", "runners", "eltern", "kind", "kindes", "kinder", "laufer", "laufers"),
        *("mitglied", "mitglieds", "privat", "teilnehmer", "teilnehmers"),
    )
)
"""Whose field it is, which means the same field."""
_TOGETHER: Final = 0.97
"""Every part of `City/Town` means the same field."""
_OTHER_UNIT: Final = 0.9
"""The header means the field, beside a unit that is not the field's."""
_VALUES_ALONE: Final = 0.92
_MAILS_ALONE: Final = 0.97
_TELLING: Final = 0.3
_FITTING: Final = 0.6
"""What is left of the doubt where the values fit."""
_CONTRADICTED: Final = 0.5
"""Share of the values that a field can take below which the column does not mean it."""
_AHEAD: Final = 0.1
"""By how much the likeliest field is ahead; else none is suggested."""


class FieldSuggestion(NamedTuple):
    """A field that a column probably means."""

    field: str
    score: float
    """How likely, from 0 to 1."""
    why: str
    """For people."""


class ColumnSuggestions:
    """Suggests fields of an import type for columns.

    Args:
        fields: Fields of the import type, custom lists included.
    """

    def __init__(self, fields: Sequence[FieldSpec]) -> None:
        wordings = [(form, field.name) for field in fields for form in field.wordings]
        self._fields = fields
        self._names = [name for _, name in wordings]
        self._forms = [form for form, _ in wordings]
        self._lookalikes = Lookalikes(self._forms)

    def __call__(self, header: str, samples: Sequence[str]) -> Sequence[FieldSuggestion]:
        """The field that a column probably means; none where two are about as likely.

        Args:
            header: As written; "" for none.
            samples: Distinct values of the column, as a person sees them.
        """
        by_words = self._by_words(header)
        found: list[FieldSuggestion] = []
        for field in self._fields:
            score, form = by_words.get(field.name, (0.0, ""))
            is_other = names_other_unit(header, field)
            observed = evidence(field, samples)
            likely = _weighed(field, max(score, _OTHER_UNIT if is_other else 0), observed)
            if likely >= POSSIBLE_FROM:
                why = _why(form, observed)
                if is_other:
                    also = f"; {why}" if why else ""
                    why = f"names another unit than the field{also}"[:GROUNDS]
                found.append(FieldSuggestion(field.name, round(likely, 2), why))
        found.sort(key=lambda each: -each.score)
        if len(found) > 1 and found[0].score - found[1].score < _AHEAD:
            return ()
        return [each for each in found if each.score >= SUGGESTED_FROM]

    def _by_words(self, header: str) -> Mapping[str, tuple[float, str]]:
        """Field to how likely the header means it, and the wording that it looks like."""
        best: dict[str, tuple[float, str]] = {}
        for text in _variants(header):
            for name, found in self._alike(text).items():
                if found > best.get(name, (0.0, "")):
                    best[name] = found
        split = map(normalise, _EITHER.split(_ASIDES.sub(" ", header)))
        parts = [part for part in split if part]
        if len(parts) > 1:
            each_part = [self._alike(part) for part in parts]
            for name in sorted(set(each_part[0]).intersection(*each_part[1:])):
                if all(found[name][0] >= SUGGESTED_FROM for found in each_part):
                    best[name] = (_TOGETHER, each_part[0][name][1])
        return best

    def _alike(self, text: str) -> Mapping[str, tuple[float, str]]:
        found: dict[str, tuple[float, str]] = {}
        for place, score in self._lookalikes.most_alike(text, POSSIBLE_FROM):
            found.setdefault(self._names[place], (score, self._forms[place]))
        return found


def _variants(header: str) -> Iterator[str]:
    """A header, without what stands in brackets, and without whose field it is."""
    whole, bare = normalise(header), normalise(_ASIDES.sub(" ", header))
    words = [word for word in bare.split() if word not in _OWNERS]
    yield from dict.fromkeys(text for text in (whole, bare, " ".join(words)) if text)


def _weighed(field: FieldSpec, score: float, observed: Evidence | None) -> float:
    """How likely a field is, by words and values together."""
    if observed is None:
        return score
    if observed.share < _CONTRADICTED:
        return 0.0
    if observed.telling and not score:
        return _MAILS_ALONE if field.kind is ColumnKind.MAIL else _VALUES_ALONE
    if observed.telling and score >= SUGGESTED_FROM:
        return 1 - (1 - score) * _TELLING
    # The phone number of a column that is called `Notfallkontakt Telefon` is another person's.
    return 1 - (1 - score) * _FITTING if score and observed.words else score


def _why(form: str, observed: Evidence | None) -> str:
    reasons = [f"the header looks like \u201c{form}\u201d"] if form else []
    if observed is not None and observed.words:
        reasons.append(observed.words)
    return "; ".join(reasons)[:GROUNDS]


_UNNAMED: Final = re.compile(r"Column [A-Z]{1,3}")
_HEADER_CHARACTERS: Final = 200
MAILS: Final = 0.97
"""A column of mail addresses, whatever it is called."""
_MEASURED: Final = 0.88
"""The header names a unit beside the field."""
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
    fields: Sequence[FieldSpec],
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
    by_header = {header: field for field in fields for header in sorted(field.headers)}
    claims = sorted(
        (
            claim
            for place, (_, header) in enumerate(headers)
            for claim in _claims(place, header, fields, memory, by_header)
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
            place: (_words_of_header(header), values[place])
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


def has_rivals(columns: Sequence[ColumnMapping]) -> bool:
    """Whether a column without a field names one that another column has."""
    taken = {each.target for each in columns if each.target is not None}
    return any(
        each.status is MappingStatus.UNMATCHED
        and not taken.isdisjoint(field.name for field in each.alternatives)
        for each in columns
    )


def _words_of_header(header: str) -> str:
    """A header, "" for a column that has none."""
    return "" if _UNNAMED.fullmatch(header) else header


def _meaning(
    fields: Sequence[FieldSpec], claim: _Claim | None, ignored: str | None
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
    fields: Sequence[FieldSpec],
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
    place: int,
    header: str,
    fields: Sequence[FieldSpec],
    memory: Mapping[str, str | None],
    by_header: Mapping[str, FieldSpec],
) -> Iterator[_Claim]:
    if _UNNAMED.fullmatch(header):
        return
    key, signs, remembered = squash(header), unit_signs(header), memory.get(header_key(header))
    is_named = field_named(header, by_header) is not None
    measured = None if is_named else field_without_unit(header, by_header, units_alone=True)
    for number, field in enumerate(fields):
        if key in field.headers and signs <= field.signs:
            yield _Claim(EXACT if key in field.own_headers else SPELLING, place, number)
        elif remembered == field.name:
            yield _Claim(REMEMBERED, place, number, _BEFORE)
        elif field is measured:
            yield _Claim(_MEASURED, place, number)


def _claims_in_company(
    headers: Sequence[tuple[int, str]],
    fields: Sequence[FieldSpec],
    given: Mapping[int, _Claim],
    taken: Collection[int],
) -> Iterator[_Claim]:
    """Claims of headers that mean a field only where another field has a column, or has none."""
    there = {fields[number].name for number in given}
    for number, field in enumerate(fields):
        for place, (_, header) in enumerate(headers):
            if number in given or place in taken:
                continue
            key = squash(header)
            alone = field.either not in there and key in field.headers_instead
            if alone or field.headers_beside.get(key) in there:
                yield _Claim(SPELLING, place, number)
                break


def _claims_of_mails(
    samples: Sequence[Sequence[str]],
    fields: Sequence[FieldSpec],
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
    fields: Sequence[FieldSpec],
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


NO_ROWS: Final = "the file holds no rows; choose another"
ONLY_HEADERS: Final = (
    "the file holds headers and no rows below them; fill it in, or upload it again and say "
    "that it has no header row"
)
SIDEWAYS: Final = (
    "the table seems to lie on its side: its headers stand below each other, and each column "
    "beside them is a row; transpose it (in Excel: copy it, Paste Special, Transpose) and upload "
    "it again, or say in which line the headers are"
)
HEADER_WITHIN: Final = 30
"""Rows among which a header is looked for: titles and logos may stand above it."""
HEADER_CHARACTERS: Final = 200
_FILLED_OF_ROW: Final = 2
"""Cells of a row that holds more than a note below a table."""
_DATA: Final = re.compile(r"[-+\d\s.,:/%()]+|\S+@\S+\.\S+")
"""Numbers, dates, times, phone numbers and mail addresses: no title looks like that."""

_OF_A_ROW: Final = re.compile(
    r"\S+@\S+\.\S+|\d{1,4}[./-]\d{1,2}[./-]\d{1,4}|\d{1,3}:\d{2}(:\d{2})?([.,]\d+)?"
)
"""Mail addresses, dates and times. Years and seasons (2024/25) do stand above columns."""


class SheetHeader(NamedTuple):
    """A header row."""

    line: int
    """Of its last row, as the user's program shows it, from 1."""
    cells: Sequence[Cell]
    """Titles, of two rows together."""
    first: int = 0
    """Line of its first row."""


NO_HEADER: Final = SheetHeader(0, ())
"""Of a sheet whose first row holds data: it lies above every line."""


class _Rank(NamedTuple):
    """How much a row looks like a header; the greatest is it, the first of equals."""

    fields: int
    """Fields that its cells name, if they are several: one may be chance."""
    titles: bool
    """It is wide enough and holds little but titles."""
    field: bool
    """Some cell names a field."""


def find_header(
    rows: Sequence[tuple[int, Sequence[Cell]]],
    fields: Sequence[FieldSpec],
    *,
    key: Collection[str] = (),
    header_line: int | None = None,
) -> SheetHeader:
    """Find the header among the first rows of a sheet.

    It is the row whose cells name most fields. Where none names several, it is the first that
    is about as wide as the others and holds little but titles. A row beside it belongs to it if
    both give titles together, and so does a row below it that numbers the columns.

    Args:
        rows: Line and cells, from the top; a given `header_line` among them.
        fields: Fields of the import type.
        key: Those that name a row.
        header_line: Line that a person has set.

    Raises:
        InvalidDocument: There are no rows, or nothing on the given line, or the headers stand below
            each other in a column.
    """
    if header_line is not None:
        for index, (line, _) in enumerate(rows):
            if line == header_line:
                return _whole_header(rows, index, fields, key)
        raise InvalidDocument(f"line {header_line} holds nothing; choose the line of the headers")
    if not rows:
        raise InvalidDocument("the sheet holds no rows; choose another one or another file")
    top = rows[:HEADER_WITHIN]
    known = _known(fields)
    width = max(count_filled(cells) for _, cells in top)
    ranks = [_rank(cells, known, width) for _, cells in top]
    if not max(ranks).fields and any(
        titles_in_columns([cells for _, cells in top], lambda title: known.get(squash(title)))
    ):
        raise InvalidDocument(SIDEWAYS)
    return _whole_header(rows, ranks.index(max(ranks)), fields, key)


def _whole_header(
    rows: Sequence[tuple[int, Sequence[Cell]]],
    index: int,
    fields: Sequence[FieldSpec],
    key: Collection[str],
) -> SheetHeader:
    """The header that a row is a part of."""
    line, cells = rows[index]
    if index and line == rows[index - 1][0] + 1 and counts_columns(cells, 0):
        above = _whole_header(rows, index - 1, fields, key)
        return above if above.line == line else SheetHeader(line, cells, line)
    by_header = {header: each for each in fields for header in sorted(each.headers)}
    meant = _meant(title_cells(cells), by_header)
    found, most = SheetHeader(line, cells, line), len({each.name for each in meant.values()})
    for start, fewest in ((index - 1, most + 1), (index, max(most, 1))):
        if start < 0 or start + 2 > len(rows) or rows[start][0] + 1 != rows[start + 1][0]:
            continue
        (first, upper), (last, second) = rows[start : start + 2]
        lower = without_blanks(second)
        titles = joined_titles(
            title_cells(upper), lower, lambda each: _field(each, by_header) is not None
        )
        meant = _meant(titles, by_header)
        names = len({each.name for each in meant.values()})
        texts = [title_text(title) for title in titles]
        if (
            names >= fewest
            and may_be_second(second)
            and adds_titles(texts, meant, key, upper, lower)
        ):
            found, most, index = SheetHeader(last, titles, first), names, start + 1
    below = rows[index + 1] if index + 1 < len(rows) else (0, ())
    is_counted = below[0] == found.line + 1 and most > 0 and counts_columns(below[1], most)
    return found._replace(line=below[0]) if is_counted else found


def _meant(titles: Sequence[Cell], by_header: Mapping[str, FieldSpec]) -> Mapping[int, FieldSpec]:
    """Place of each title that means a field, and the field."""
    found = {place: _field(title_text(title), by_header) for place, title in enumerate(titles)}
    return {place: each for place, each in found.items() if each is not None}


def _field(title: str, by_header: Mapping[str, FieldSpec]) -> FieldSpec | None:
    return field_named(title, by_header) or field_without_unit(title, by_header)


def rows_above(
    rows: Sequence[tuple[int, Sequence[Cell]]], header: SheetHeader, fields: Sequence[FieldSpec]
) -> tuple[int, ...]:
    """Lines of a table above the header, whose own header names several fields too.

    They are not read. Titles, logos and legends above a header name no fields.

    Args:
        rows: Line and cells, from the top, as the header was looked for in.
        header: The header that was found.
        fields: Fields of the import type.
    """
    known = _known(fields)
    lines: list[int] = []
    begun = False
    for line, cells in rows:
        if line >= header.first:
            break
        filled = count_filled(cells)
        if _rank(cells, known, filled).fields:
            begun = True
        elif begun and filled >= _FILLED_OF_ROW:
            lines.append(line)
    return tuple(lines)


def reads_like_a_row(headers: Iterable[str]) -> bool:
    """Whether what is taken for headers holds something that only rows hold."""
    return any(_OF_A_ROW.fullmatch(header.strip()) for header in headers)


def column_titles(
    header: Sequence[Cell], rows: Sequence[Sequence[Cell]], width: int = 0
) -> list[tuple[int, str]]:
    """Place and title of each column that has a header or a value.

    A column with values and without a header is called by its letter: `Column F`. Behind the last
    field of a text table's header, it is one only if most rows fill it: few were cut in the wrong
    places.

    Args:
        header: Cells of the header row.
        rows: Cells of the rows below it, as many as one cares to look at.
        width: Fields of the header of a text table; 0: it is a sheet.
    """
    titles = {index: readable(cell, HEADER_CHARACTERS) for index, cell in enumerate(header)}
    filled = Counter(i for cells in rows for i, cell in enumerate(cells) if is_filled(cell))
    valued = {i for i, n in filled.items() if not 0 < width <= i or 2 * n > len(rows)}
    return [
        (index, titles.get(index) or column_name(index))
        for index in sorted(valued | titles.keys())
        if titles.get(index) or index in valued
    ]


def _known(fields: Sequence[FieldSpec]) -> Mapping[str, str]:
    """Key of each header that names a field, to the field."""
    return {
        header: each.name
        for each in fields
        for header in (*each.headers_beside, *each.headers_instead, *each.headers)
    }


def _rank(cells: Sequence[Cell], known: Collection[str], width: int) -> _Rank:
    titles = [cell for cell in cells if isinstance(cell, str) and _is_title(cell.strip())]
    named = {key for title in titles if (key := squash(title)) in known}
    filled = count_filled(cells)
    looks_right = 2 * filled > width and len(titles) >= _MOSTLY * filled and bool(titles)
    return _Rank(len(named) if len(named) > 1 else 0, looks_right, bool(named))


def _is_title(text: str) -> bool:
    return 0 < len(text) <= TITLE_CHARACTERS and not _DATA.fullmatch(text)
