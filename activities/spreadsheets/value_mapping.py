"""What the values of a column refer to, and what those of a run mean."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol

from activities.spreadsheets.entities import (
    CANDIDATES,
    COMPARISONS,
    EXACT,
    REFERENCE,
    REMEMBERED,
    SPELLING,
    EntityIndex,
    EntityScope,
    ImportContext,
    Likeness,
    countries_alike,
    countries_beginning,
    country_named,
    key_id,
    likeliest,
    own_spellings,
)
from adapters.types.references import Referred, key_meant, row_made
from workflows.shared.cells import Cell, is_blank, readable
from workflows.shared.fields import FieldSpec
from workflows.spreadsheets.decisions import CHOICES, has_one_choice
from workflows.spreadsheets.fields import (
    Entity,
    FoundValue,
    RememberedValue,
    value_key,
)
from workflows.spreadsheets.mappings import CellDecision, CellMapping, MappingStatus

COUNTRIES: Final = "countries"
NO_REFERENCES: Final[Mapping[str, Referred]] = MappingProxyType({})
LIKE_NAMES: Final = 30_000
"""Names that a value is compared with which names no country."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a value means."""

    target: Entity | None
    """None: unknown."""
    confidence: float = 0
    alternatives: Sequence[Likeness] = ()
    """The likeliest candidates, where `target` is None."""
    ignored: bool = False
    """The value counts as empty."""
    create: bool = False
    """A row is to be made for it."""
    refused: bool = False
    """It names no row, and nobody is asked."""


class CellValueResolver(Protocol):
    """Finds the rows of one kind that cells refer to."""

    def resolve(self, value: str, context: ImportContext) -> Resolution:
        """What a value means; likeness alone never decides.

        Args:
            value: As a person sees it.
            context: Context of the import, with the candidates.
        """
        ...

    def candidates(self, context: ImportContext, query: str) -> Sequence[Entity]:
        """What a person may choose from, best matches of the query first, at most 50."""
        ...


class Entities:
    """Resolves by names and spellings of the rows of one kind.

    Args:
        kind: Kind of the scope that the rows come from.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def _index(self, context: ImportContext) -> EntityIndex:
        return context.index(self._kind)

    def resolve(self, value: str, context: ImportContext) -> Resolution:
        """By name, then by spelling, then by part of the name where only one has it."""
        found = self._index(context).find(value)
        if found is not None:
            return Resolution(found.entity, found.score)
        return Resolution(None, 0, self._index(context).likely(value))

    def candidates(self, context: ImportContext, query: str) -> Sequence[Entity]:
        """Rows to choose from."""
        return self._index(context).search(query, CANDIDATES)


class Keys(Entities):
    """Resolves by the whole key or label of a row: one that is alike is only suggested."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self._rows: dict[str, Entity | None] | None = None

    def resolve(self, value: str, context: ImportContext) -> Resolution:
        """By key, then by the label that one row alone has."""
        if self._rows is None:
            self._rows = {}
            for each in context.entities.get(self._kind, ()):
                known = self._rows.setdefault(each.name, each)
                self._rows[each.name] = each if known is each else None
            for each in context.entities.get(self._kind, ()):
                self._rows[str(each.key)] = each
        found = self._rows.get(value.strip())
        if found is not None:
            return Resolution(found, EXACT)
        return Resolution(None, 0, self._index(context).likely(value))


class Countries(Entities):
    """Resolves countries by ISO and Olympic codes and by their names in all languages of CLDR."""

    def __init__(self) -> None:
        super().__init__(COUNTRIES)
        self._comparisons = COMPARISONS

    def _index(self, context: ImportContext) -> EntityIndex:
        return context.index(COUNTRIES, lambda entity: own_spellings(entity.id))

    def resolve(self, value: str, context: ImportContext) -> Resolution:
        """By code and English name, then by name in other languages."""
        index = self._index(context)
        found = index.find(value)
        if found is not None:
            return Resolution(found.entity, found.score)
        named = index.by_id.get(country_named(value) or 0)
        if named is not None and not index.knows(value):
            return Resolution(named, SPELLING)
        self._comparisons -= LIKE_NAMES
        if self._comparisons < 0:
            return Resolution(None)
        alike = {
            number: Likeness(index.by_id[number], score)
            for number, score in countries_alike(value).items()
            if number in index.by_id
        }
        return Resolution(None, 0, likeliest(alike))

    def candidates(self, context: ImportContext, query: str) -> Sequence[Entity]:
        """Rows to choose from, by their names in all languages."""
        index = self._index(context)
        found = {entity.id: entity for entity in index.search(query, CANDIDATES)}
        numbers = countries_beginning(query) or countries_alike(query)
        further = [index.by_id[number] for number in numbers if number in index.by_id]
        return list({**{each.id: each for each in further}, **found}.values())[:CANDIDATES]


def resolver_of(name: str) -> CellValueResolver:
    """The resolver that a field names: `countries`, rows by their keys, or by their names."""
    if name.startswith(REFERENCE):
        return Keys(name)
    return Countries() if name == COUNTRIES else Entities(name)


def scope_of(
    field: FieldSpec, context: ImportContext, referred: Mapping[str, Referred] = NO_REFERENCES
) -> EntityScope:
    """Which rows the cells of a field may refer to.

    Raises:
        ValueError: Cells of this field refer to nothing.
    """
    if field.resolver is None:
        raise ValueError(f"{field.name} has no resolver")
    return EntityScope(
        field.resolver,
        context.organisation_id,
        context.context_id,
        referred.get(field.resolver),
        context.scope,
    )


def check_decision(
    field: FieldSpec,
    decision: CellDecision,
    entities: Mapping[int, Entity],
    why_not_made: str | None = None,
) -> str | None:
    """Why a decision about a value cannot be taken; None: it can.

    Args:
        field: The field whose value it is.
        decision: A person's decision.
        entities: The candidates of the field, by id.
        why_not_made: Why the type of the row that would be created refuses it, if it does.
    """
    if not has_one_choice(decision):
        return f"value {decision.id}: set exactly one of {CHOICES}"
    if decision.create and not field.creates:
        return (
            f"value {decision.id}: {field.title} takes what is there already; "
            "choose a candidate or ignore the value"
        )
    if decision.create and why_not_made is not None:
        return (
            f"value {decision.id}: it cannot be created, because {why_not_made}; choose a "
            "candidate or ignore the value, or correct it in the file and upload that again"
        )
    if decision.target_id is not None and decision.target_id not in entities:
        return (
            f"value {decision.id}: there is no {field.title} {decision.target_id} to choose; "
            "take one of the candidates"
        )
    return None


VALUE_CHARACTERS: Final = 200
OPEN_KEPT: Final = 100_000
"""Values without a decision that a book knows; some 40 MB. Further ones are asked for again."""


class NoEntity(Enum):
    """Meanings that are not rows of another table."""

    IGNORED = "ignored"
    """The cell counts as blank."""
    OPEN = "open"
    """A person has to decide."""
    TO_CREATE = "to create"
    """A row that is yet to be made, in a dry run; the cell has a value without an id."""
    REFUSED = "refused"
    """It names no row; its row is rejected."""


IGNORED: Final = NoEntity.IGNORED
OPEN: Final = NoEntity.OPEN
TO_CREATE: Final = NoEntity.TO_CREATE
REFUSED: Final = NoEntity.REFUSED
Meaning = int | NoEntity
LEFT_EMPTY: Final = RememberedValue()


def value_text(cell: Cell) -> str:
    """A cell as the value that a person decides about: one line, at most 200 characters."""
    return readable(cell, VALUE_CHARACTERS)


class ValueBook:
    """The meaning of every value of the fields that refer to other tables.

    It knows what was decided, asks the resolvers about the rest, and notes what it finds.

    Args:
        fields: Fields of the import type.
        context: Context of the import, with the candidates of each field.
        resolvers: Resolvers by name, for kinds that names and spellings do not find.
        counting: Rows of values that were added before count as well: the pass that found them
            had not read the rows that come now.
        own: Fields that refer to rows of the file itself too; until those are noted, each of their
            values is taken to be one.
        referred: What fields of declared types refer to, by resolver.
    """

    def __init__(
        self,
        fields: Sequence[FieldSpec],
        context: ImportContext,
        resolvers: Mapping[str, CellValueResolver] | None = None,
        *,
        counting: bool = False,
        own: Collection[str] = (),
        referred: Mapping[str, Referred] = NO_REFERENCES,
    ) -> None:
        self._referred = {
            each.name: referred[each.resolver]
            for each in fields
            if each.resolver is not None and each.resolver in referred
        }
        self._own: dict[str, Collection[str] | None] = dict.fromkeys(own)
        self._context = context
        self._counting = counting
        self._resolvers = {
            each.name: (resolvers or {}).get(each.resolver) or resolver_of(each.resolver)
            for each in fields
            if each.resolver is not None
        }
        self._kinds = {each.name: each.resolver for each in fields if each.resolver is not None}
        self._by_id: dict[str, Mapping[int, Entity]] = {}
        self._known: dict[str, dict[str, Meaning]] = {name: {} for name in self._resolvers}
        self._fields = {each.name: each for each in fields}
        self._remembered = {
            name: {
                value_key(value): chosen
                for value, chosen in context.remembered.get(name, {}).items()
            }
            for name in self._resolvers
        }
        self._undecided = 0
        self._found: dict[tuple[str, str], Resolution] = {}
        self._rows: Counter[tuple[str, str]] = Counter()

    @property
    def own(self) -> Collection[str]:
        """Fields that refer to rows of the file itself too."""
        return self._own.keys()

    def note_own(self, keys: Collection[str]) -> None:
        """Take the keys of the rows of the file."""
        self._own = dict.fromkeys(self._own, keys)
        self._found.clear()

    def names_own(self, field: str, cell: Cell) -> str | None:
        """Return the key of the row of the file that a cell means; None: it means no such row."""
        text = value_text(cell)
        meaning = self.meaning(field, text, 0) if text else None
        is_own = isinstance(meaning, int) and meaning not in self._candidates(field)
        return text if is_own and meaning == key_id(text) else None

    def load(self, mappings: Iterable[CellMapping]) -> None:
        """Take what is decided. A value to create whose row exists comes with its `target_id`."""
        for mapping in mappings:
            if mapping.field not in self._known:
                continue
            meaning = _meaning_of(mapping)
            if meaning is OPEN:
                if self._undecided >= OPEN_KEPT:
                    continue
                self._undecided += 1
            self._known[mapping.field][mapping.value] = meaning

    def meaning(self, field: str, text: str, rows: int = 1) -> Meaning:
        """What a value means.

        Args:
            field: Name of the field.
            text: As `value_text` gives it.
            rows: How many rows hold it; 0 when they were counted before.
        """
        known = self._known[field].get(text)
        if known is not None and not self._counting:
            return known
        key = (field, text)
        if key not in self._found:
            self._found[key] = self._ask(field, text)
        if rows:
            self._rows[key] += rows
        if known is not None:
            return known
        found = self._found[key]
        if found.ignored:
            return IGNORED
        if found.refused:
            return REFUSED
        return OPEN if found.target is None else found.target.id

    def meanings(
        self, field: str, cells: Sequence[Cell], *, counted: bool = False
    ) -> list[Meaning | None]:
        """What the cells of a column mean; None for a blank.

        Args:
            field: Name of the field.
            cells: As read.
            counted: Their rows were counted before.
        """
        texts = _texts(cells)
        answers: dict[str | None, Meaning | None] = {
            text: self.meaning(field, text, 0 if counted else rows) if text else None
            for text, rows in Counter(texts).items()
        }
        return [answers[text] for text in texts]

    def take_found(self) -> list[FoundValue]:
        """Values that no mapping knew, with the rows counted since this was asked last."""
        taken = [
            self._report(field, text, rows)
            for (field, text), rows in self._rows.items()
            if not self._found[field, text].refused
        ]
        self._rows.clear()
        if len(self._found) > OPEN_KEPT:
            self._found.clear()
        return taken

    def _ask(self, field: str, text: str) -> Resolution:
        remembered = self._remembered[field].get(value_key(text))
        if remembered == LEFT_EMPTY:
            return Resolution(None, REMEMBERED, ignored=True)
        resolution = self._resolvers[field].resolve(text, self._context)
        referred = self._referred.get(field)
        key = text if referred is None else key_meant(referred, text)
        if resolution.target is None and key != text:
            resolution = self._resolvers[field].resolve(key, self._context)
        if resolution.target is not None:
            return resolution
        if field in self._own and ((keys := self._own[field]) is None or text in keys):
            return Resolution(Entity(key_id(text), text, (), text), EXACT)
        entity = None if remembered is None else self._remembered_entity(field, remembered)
        if entity is not None:
            return Resolution(entity, REMEMBERED)
        if is_blank(text, self._fields[field]):
            return Resolution(None, EXACT, ignored=True)
        if self._fields[field].unknown == "refuse":
            return Resolution(None, refused=True)
        if self._fields[field].unknown == "create" and (
            referred is None or row_made(referred, self._context.scope, text)[1] is None
        ):
            return Resolution(None, EXACT, create=True)
        # A person decides about a row that its type refuses.
        return resolution

    def is_keyed(self, field: str) -> bool:
        """Whether cells of a field are stored as keys, and not as ids."""
        return self._kinds[field].startswith(REFERENCE)

    def key(self, field: str, id: int, cell: Cell) -> str | None:
        """What is stored of a row that a cell means; None: the row is not there any more."""
        found = self._candidates(field).get(id)
        if found is not None:
            return found.key
        text, keys = value_text(cell), self._own.get(field, ())
        return text if key_id(text) == id and (keys is None or text in keys) else None

    def _remembered_entity(self, field: str, chosen: RememberedValue) -> Entity | None:
        """The row that was chosen before; in another event the one of the same name."""
        if chosen.target_id is not None:
            entity = self._candidates(field).get(chosen.target_id)
            if entity is not None:
                return entity
        if chosen.target_name is None:
            return None
        return self._resolvers[field].resolve(chosen.target_name, self._context).target

    def _candidates(self, field: str) -> Mapping[int, Entity]:
        kind = self._kinds[field]
        if kind not in self._by_id:
            self._by_id[kind] = {each.id: each for each in self._context.entities.get(kind, ())}
        return self._by_id[kind]

    def _report(self, field: str, text: str, rows: int) -> FoundValue:
        resolution = self._found[field, text]
        target = resolution.target
        return FoundValue(
            field,
            text,
            rows,
            target_id=None if target is None else target.id,
            target_name=None if target is None else target.name[:VALUE_CHARACTERS],
            confidence=resolution.confidence,
            alternatives=tuple(
                (each.entity.id, each.entity.name[:VALUE_CHARACTERS], each.score)
                for each in resolution.alternatives
            ),
            ignored=resolution.ignored,
            create=resolution.create,
        )


def _meaning_of(mapping: CellMapping) -> Meaning:
    if mapping.status is MappingStatus.IGNORED:
        return IGNORED
    if mapping.target_id is not None:
        return mapping.target_id
    return TO_CREATE if mapping.create else OPEN


def _texts(cells: Sequence[Cell]) -> Sequence[str | None]:
    """Each cell as its value; equal texts for equal values, None or nothing for a blank."""
    types = set(map(type, cells))
    if bool in types:
        # True equals 1: one dictionary cannot hold both.
        return [value_text(cell) for cell in cells]
    texts = {cell: value_text(cell) for cell in dict.fromkeys(cells)}
    return [texts[cell] for cell in cells]
