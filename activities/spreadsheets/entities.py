"""Rows that cells can refer to, and how likely two wordings mean the same.

How likely it is that two wordings mean the same; good enough to suggest, never to decide.

A score is the share of wordings alike in the same way that do mean the same, as measured on the
labelled pairs of `benchmarks/spreadsheets/suggestions.tsv`.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from types import MappingProxyType
from typing import Final, NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from adapters.types.countries import countries
from adapters.types.references import Referred
from workflows.shared.fields import normalise, written
from workflows.spreadsheets.fields import CustomList, Entity, RememberedValue, value_key

SUGGESTED_FROM: Final = 0.8
"""Floor: what is less likely is not suggested."""
POSSIBLE_FROM: Final = 0.5
"""What is less likely says nothing, whatever speaks for it beside."""
NAME_WITH_MORE: Final = 0.92
"""`Honorary member` for `Honorary`, among names of rows, of which few share a word."""
COMPARED_CHARACTERS: Final = 100

_SAME_WORDS: Final = 0.97
_ONE_SLIP: Final = 0.96
_TWO_SLIPS: Final = 0.92
_SHORTENED: Final = 0.9
_WITH_MORE: Final = 0.6
_WITHIN: Final = 0.5

_SHORTEST_SLIP: Final = 4
_LONG: Final = 8
"""Characters from which two slips are still the same word."""
_SHORTEST_PART: Final = 3
_SHORTEST_WITHIN: Final = 5
_ENDINGS: Final = ("s", "n", "en", "e", "er")
_FILLERS: Final = frozenset(
    (
        *("a", "an", "and", "any", "as", "by", "for", "from", "in", "m", "of", "on", "or", "s"),
        *("the", "to", "with", "your", "am", "d", "der", "des", "die", "das", "u", "und", "vom"),
        *("von", "zu", "zum", "l", "la", "le", "les"),
    )
)
"""Words that add nothing."""
_NEAR: Final = 70.0
"""Percent of likeness from which two texts are compared word by word."""
_COMPARED: Final = 50
_DIGITS: Final = re.compile(r"\d+")


def alike(text: str, form: str, with_more: float = _WITH_MORE) -> float:
    """How likely two wordings mean the same, from 0 to 1; 0 below `POSSIBLE_FROM`.

    Args:
        text: Normalised, as a person wrote it.
        form: Normalised, of what it may mean.
        with_more: How likely a text means a form that it holds beside other words.
    """
    if _DIGITS.findall(text) != _DIGITS.findall(form):
        # U18 is no misspelt U20.
        return 0.0
    words, others = _words(text), _words(form)
    one, other = "".join(words), "".join(others)
    if not one or not other:
        return 0.0
    if one == other or sorted(map(_stem, words)) == sorted(map(_stem, others)):
        return _SAME_WORDS
    if set(map(_stem, others)) < set(map(_stem, words)) and len(other) >= _SHORTEST_WITHIN:
        return with_more
    return max(_slips(one, other), _shortened(words, others), _within(one, other))


def _words(text: str) -> list[str]:
    words = text.split()
    return [word for word in words if word not in _FILLERS] or words


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_SLIP:
            return word.removesuffix(ending)
    return word


def _slips(one: str, other: str) -> float:
    shorter = min(len(one), len(other))
    if shorter < _SHORTEST_SLIP:
        return 0.0
    match OSA.distance(one, other, score_cutoff=2):
        case 1 if shorter > _SHORTEST_SLIP or one[0] == other[0]:
            return _ONE_SLIP
        case 2 if shorter >= _LONG:
            return _TWO_SLIPS
        case _:
            return 0.0


def _shortened(words: Sequence[str], others: Sequence[str]) -> float:
    """`alterskl` for `altersklasse`: the beginning of every word."""
    if len(words) != len(others):
        return 0.0
    pairs = list(zip(words, others, strict=True))
    if all(b.startswith(a) and (len(a) >= _SHORTEST_PART or a == b) for a, b in pairs):
        return _SHORTENED
    return 0.0


def _within(one: str, other: str) -> float:
    """`heimatverein` for `verein`: a compound."""
    compound = len(other) >= _SHORTEST_WITHIN and (one.endswith(other) or one.startswith(other))
    return _WITHIN if compound else 0.0


class Lookalikes:
    """Finds the texts that look most like another.

    Args:
        forms: Normalised texts; one that is too long is compared by its beginning.
        with_more: How likely a text means a form that it holds beside other words.
    """

    def __init__(self, forms: Iterable[str], with_more: float = _WITH_MORE) -> None:
        self._with_more = with_more
        self._forms = [form[:COMPARED_CHARACTERS] for form in forms]
        self._bare_forms = [form.replace(" ", "") for form in self._forms]

    def most_alike(self, text: str, floor: float = SUGGESTED_FROM) -> list[tuple[int, float]]:
        """Places and scores of the forms that look most like a text, the likeliest first.

        Args:
            text: Normalised.
            floor: Smallest score.
        """
        text = text[:COMPARED_CHARACTERS]
        if not text:
            return []
        near = set(self._parts(text.replace(" ", "")))
        for scorer in (fuzz.ratio, fuzz.token_set_ratio):
            found = process.extract(
                text, self._forms, scorer=scorer, limit=_COMPARED, score_cutoff=_NEAR
            )
            near.update(place for _, _, place in found)
        scored = (
            (place, alike(text, self._forms[place], self._with_more)) for place in sorted(near)
        )
        # Equals stay in their order, so the answer is the same whenever it is asked.
        return sorted(
            (each for each in scored if each[1] >= floor), key=lambda each: (-each[1], each[0])
        )

    def _parts(self, text: str) -> Iterator[int]:
        """Places of the forms that begin with a text, or that it begins or ends with."""
        if len(text) >= _SHORTEST_PART:
            for place, form in enumerate(self._bare_forms):
                if form.startswith(text) or (
                    len(form) >= _SHORTEST_WITHIN and (text.endswith(form) or text.startswith(form))
                ):
                    yield place


EXACT: Final = 1.0
SPELLING: Final = 0.95
REMEMBERED: Final = 0.9
CANDIDATES: Final = 50
SUGGESTIONS: Final = 3
AHEAD: Final = 0.03
"""By how much the likeliest candidate is ahead; else none is suggested."""
COMPARISONS: Final = 20_000_000
"""Comparisons by likeness that an index makes, some ten seconds; then it suggests nothing."""

_PARTS: Final = re.compile(r"^([^()\[\]]+)[(\[]([^()\[\]]+)[)\]]$")


@dataclass(frozen=True, slots=True)
class Likeness:
    """A candidate and how much it looks like what was asked for, from 0 to 1."""

    entity: Entity
    score: float


def likeliest(scores: Mapping[int, Likeness]) -> Sequence[Likeness]:
    """The likeliest of candidates; none where the next one is about as likely."""
    ranked = sorted(scores.values(), key=lambda each: -each.score)
    if len(ranked) > 1 and ranked[0].score - ranked[1].score < AHEAD:
        return ()
    return ranked[:1]


class EntityIndex:
    """Finds rows by what people call them.

    A word that stands for two rows stands for neither.

    Args:
        entities: The rows.
        further: More spellings of a row.
    """

    def __init__(
        self,
        entities: Sequence[Entity],
        further: Callable[[Entity], Iterable[str]] = lambda entity: (),
    ) -> None:
        self.by_id: Mapping[int, Entity] = {entity.id: entity for entity in entities}
        self._literal = _Words()
        self._names = _Words()
        self._spellings = _Words()
        self._parts = _Words()
        self._texts: list[str] = []
        self._owners: list[Entity] = []
        self._comparisons = COMPARISONS
        self._sorted = sorted(entities, key=lambda entity: (normalise(entity.name), entity.id))
        for entity in self._sorted:
            self._add(entity, (*entity.spellings, *further(entity)))
        self._lookalikes = Lookalikes(self._texts, NAME_WITH_MORE)

    def _add(self, entity: Entity, spellings: Sequence[str]) -> None:
        self._literal.add(entity.name.strip().casefold(), entity)
        self._names.add(value_key(entity.name), entity)
        others = [
            form for name in (entity.name, *spellings) for form in written(name) if form.strip()
        ]
        for form in others:
            self._spellings.add(value_key(form), entity)
        parts = _PARTS.match(entity.name.strip())
        for part in parts.groups() if parts else ():
            self._parts.add(value_key(part), entity)
            others.append(part)
        for text in dict.fromkeys(normalise(form) for form in others):
            self._texts.append(text)
            self._owners.append(entity)

    def find(self, value: str) -> Likeness | None:
        """The row that a value names, and nothing by mere likeness."""
        key = value_key(value)
        if not key:
            return None
        found = self._literal.get(value.strip().casefold()) or self._names.get(key)
        if found is not None:
            return Likeness(found, EXACT)
        # The name of one row is not a spelling of another, nor part of its name.
        if key in self._names:
            return None
        found = self._spellings.get(key)
        if found is None and key not in self._spellings:
            found = self._parts.get(key)
        return None if found is None else Likeness(found, SPELLING)

    def knows(self, value: str) -> bool:
        """Whether a value is a name or spelling, of one row or of several."""
        key = value_key(value)
        return key in self._names or key in self._spellings

    def likely(self, value: str) -> Sequence[Likeness]:
        """The row that a value probably means; none where two are as likely."""
        self._comparisons -= len(self._texts)
        if self._comparisons < 0:
            return ()
        return likeliest(self._scores(value))

    def _scores(self, value: str) -> Mapping[int, Likeness]:
        best: dict[int, Likeness] = {}
        for place, score in self._lookalikes.most_alike(normalise(value)):
            entity = self._owners[place]
            best.setdefault(entity.id, Likeness(entity, score))
        return best

    def search(self, query: str, limit: int = CANDIDATES) -> Sequence[Entity]:
        """Rows for a list to choose from: by name, or the best matches of a query first."""
        text = normalise(query)
        if not text:
            return self._sorted[:limit]
        ranked: dict[int, tuple[int, int]] = {}
        for place, (form, entity) in enumerate(zip(self._texts, self._owners, strict=True)):
            if text in form:
                rank = 0 if form == text else 1 if form.startswith(text) else 2
                rank = 3 if rank == 2 and f" {text}" not in form else rank
                ranked[entity.id] = min(ranked.get(entity.id, (rank, place)), (rank, place))
        found = [self.by_id[id] for id in sorted(ranked, key=lambda id: ranked[id])]
        if len(found) < limit:
            found += [each.entity for each in self._scores(query).values()]
        return list({entity.id: entity for entity in found}.values())[:limit]


class _Words:
    """Word to row, or to None where it could be several."""

    def __init__(self) -> None:
        self._rows: dict[str, Entity | None] = {}

    def add(self, word: str, entity: Entity) -> None:
        if word and (known := self._rows.setdefault(word, entity)) is not entity:
            self._rows[word] = known if known is not None and known.id == entity.id else None

    def get(self, word: str) -> Entity | None:
        return self._rows.get(word)

    def __contains__(self, word: str) -> bool:
        return word in self._rows


_ID_BITS: Final = 52
"""JavaScript holds such numbers exactly."""


REFERENCE: Final = "reference/"
"""What the names of resolvers begin with whose rows are stored by their keys."""


def key_id(key: str) -> int:
    """The number of a row that is known by its key: the same whenever it is asked for."""
    digest = hashlib.blake2b(key.encode(), digest_size=8).digest()
    return (int.from_bytes(digest) >> (64 - _ID_BITS)) or 1


@dataclass(frozen=True, slots=True)
class EntityScope:
    """Which rows of a referred table an import may choose from."""

    kind: str
    """`countries`, `event_categories`, `membership_types`, `custom_list/{id}`, or
    `reference/{field}`."""
    organisation_id: int
    context_id: int | None = None
    referred: Referred | None = None
    """What a field of a declared type refers to."""
    scope: Mapping[str, str] = field(default_factory=dict[str, str])
    """What all rows of a declared type share."""


@dataclass(frozen=True)
class ImportContext:
    """What one import knows about its context.

    Attributes:
        organisation_id: Whose import it is.
        context_id: Event, membership period or race that the rows belong to.
        today: The day that dates are compared with.
        entities: Kind of a scope to the rows that cells may refer to.
        remembered: Field to value to what people of the organisation decided before.
        custom_lists: The organisation's custom lists.
        scope: What all rows of a declared type share.
    """

    organisation_id: int
    context_id: int | None
    today: date
    entities: Mapping[str, Sequence[Entity]] = field(default_factory=dict[str, Sequence[Entity]])
    remembered: Mapping[str, Mapping[str, RememberedValue]] = field(
        default_factory=dict[str, Mapping[str, RememberedValue]]
    )
    custom_lists: Sequence[CustomList] = ()
    scope: Mapping[str, str] = field(default_factory=dict[str, str])
    _indexes: dict[str, EntityIndex] = field(
        default_factory=dict[str, EntityIndex], init=False, repr=False, compare=False
    )

    def index(
        self, kind: str, further: Callable[[Entity], Iterable[str]] = lambda entity: ()
    ) -> EntityIndex:
        """The rows of a kind, made findable once."""
        if kind not in self._indexes:
            self._indexes[kind] = EntityIndex(self.entities.get(kind, ()), further)
        return self._indexes[kind]


_OLYMPIC: Final[Sequence[tuple[str, str]]] = tuple(
    re.findall(
        r"([A-Z]{3}) ([0-9]{3})",
        """
ALG 012 ANG 024 ANT 028 ARU 533 ASA 016 BAH 044 BAN 050 BAR 052 BER 060 BHU 064 BIZ 084 BOT 072
BRU 096 BUL 100 BUR 854 CAM 116 CAY 136 CGO 178 CHA 148 CHI 152 CRC 188 CRO 191 DEN 208 ESA 222
FIJ 242 GAM 270 GBS 624 GEQ 226 GER 276 GRE 300 GRN 308 GUA 320 GUI 324 HAI 332 HON 340 INA 360
IRI 364 ISV 850 IVB 092 KSA 682 KUW 414 LAT 428 LBA 434 LES 426 LIB 422 MAD 450 MAS 458 MAW 454
MGL 496 MON 492 MRI 480 MTN 478 MYA 104 NCA 558 NED 528 NEP 524 NGR 566 NIG 562 OMA 512 PAR 600
PHI 608 PLE 275 POR 620 PUR 630 ROM 642 RSA 710 SAM 882 SEY 690 SKN 659 SLO 705 SOL 090 SRI 144
SUD 729 SUI 756 TAN 834 TGA 776 TOG 768 TPE 158 TRI 780 UAE 784 URU 858 VAN 548 VIE 704 VIN 670
ZAM 894 ZIM 716
""",
    )
)
"""Codes of the International Olympic Committee that are not ISO codes, with the ISO number.

BRN is left out: it is Bahrain to the committee and Brunei to ISO, and ISO goes first.
"""

_EVERYDAY: Final[Mapping[int, str]] = MappingProxyType(
    {
        68: "Bolivia",
        96: "Brunei",
        104: "Burma|Birma",
        112: "Weißrussland|White Russia|Belorussia",
        132: "Cape Verde|Kapverden",
        180: "DR Congo|Congo Kinshasa|DR Kongo|Kongo Kinshasa|Democratic Republic of the Congo",
        178: "Congo|Kongo|Republic of Congo|Congo Brazzaville|Republik Kongo|Kongo Brazzaville",
        203: "Czech Republic|Tschechei",
        268: "Republic of Georgia",
        275: "Palestine|Palästina",
        336: "Vatican|Vatican City|Vatikan|Vatikanstadt|Holy See",
        344: "Hongkong|Hong Kong SAR",
        364: "Iran|Persien",
        384: "Ivory Coast|Elfenbeinküste",
        408: "North Korea|Nordkorea",
        410: "South Korea|Südkorea|Korea",
        418: "Laos",
        446: "Macau",
        498: "Moldova|Moldawien|Republik Moldau",
        528: "Holland|The Netherlands|NL",
        533: "Aruba",
        583: "Micronesia|Mikronesien",
        626: "East Timor|Osttimor",
        643: "Russia|Russland",
        659: "St. Kitts and Nevis",
        662: "St. Lucia",
        670: "St. Vincent and the Grenadines",
        748: "Swaziland|Swasiland",
        756: "Switzerland|Suisse|Svizzera|Schweizerische Eidgenossenschaft",
        760: "Syria|Syrien",
        784: "UAE|VAE|Emirates",
        792: "Turkey|Turkiye",
        807: "Macedonia|Mazedonien",
        826: (
            "UK|U.K.|Great Britain|Britain|England|Scotland|Wales|Northern Ireland|"
            "Großbritannien|Schottland|Nordirland"
        ),
        834: "Tanzania|Tansania",
        840: "USA|U.S.A.|US|U.S.|United States of America|America|Vereinigte Staaten|Amerika",
        862: "Venezuela",
        276: "BRD|Bundesrepublik Deutschland",
        40: "Republik Österreich",
        566: "Naija",
        704: "Vietnam",
    }
)
"""ISO number to names that neither ISO nor CLDR knows."""


def _own_names() -> Mapping[int, Sequence[str]]:
    found = {number: names.split("|") for number, names in _EVERYDAY.items()}
    for code, number in _OLYMPIC:
        found.setdefault(int(number), []).append(code)
    return {number: tuple(names) for number, names in found.items()}


_OWN_NAMES: Final[Mapping[int, Sequence[str]]] = MappingProxyType(_own_names())


def own_spellings(number: int) -> Sequence[str]:
    """What a country is called here beside the names of ISO and CLDR.

    Args:
        number: ISO 3166-1 numeric code.

    Returns:
        The number with and without leading zeros, Olympic codes, names of every day.
    """
    return (f"{number:03}", str(number), *_OWN_NAMES.get(number, ()))


class _Names(NamedTuple):
    """The countries by what people call them."""

    numbers: Mapping[str, int]
    """Key of each name."""
    codes: frozenset[str]
    """Of three letters, as ISO and the Olympic committee write them."""
    owners: Sequence[int]
    """Number of each name of `lookalikes`."""
    lookalikes: Lookalikes


@cache
def _names() -> _Names:
    numbers: dict[str, int] = {}
    codes = {code for code, _ in _OLYMPIC}
    texts: dict[str, int] = {}
    for country in countries():
        codes.add(country.alpha3)
        for name in country.names:
            for form in written(name):
                numbers[value_key(form)] = country.number
                texts[normalise(form)] = country.number
    for number, names in _OWN_NAMES.items():
        numbers.update((value_key(name), number) for name in names)
    return _Names(
        numbers, frozenset(codes), list(texts.values()), Lookalikes(texts, NAME_WITH_MORE)
    )


def country_named(name: str) -> int | None:
    """ISO number of the country that a name means in some language; no codes of ISO."""
    return _names().numbers.get(value_key(name))


def names_country(text: str) -> bool:
    """Whether a text is the name of a country, or its code of three capital letters."""
    return text.strip() in _names().codes or country_named(text) is not None


def countries_alike(name: str) -> Mapping[int, float]:
    """Countries with names that look like another, and how likely they are meant."""
    names = _names()
    found: dict[int, float] = {}
    for place, score in names.lookalikes.most_alike(normalise(name)):
        found.setdefault(names.owners[place], score)
    return found


def countries_beginning(text: str) -> Sequence[int]:
    """Numbers of the countries with a name that begins with a text, in some language; none for no
    text."""
    key = value_key(text)
    if not key:
        return ()
    return list(
        dict.fromkeys(number for name, number in _names().numbers.items() if name.startswith(key))
    )
