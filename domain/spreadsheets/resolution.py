"""What the cells of a column refer to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from contracts.spreadsheets import CellDecision
from domain.spreadsheets.countries import (
    countries_alike,
    countries_beginning,
    country_named,
    own_spellings,
)
from domain.spreadsheets.decisions import CHOICES, has_one_choice
from domain.spreadsheets.entities import (
    CANDIDATES,
    COMPARISONS,
    SPELLING,
    EntityIndex,
    ImportContext,
    Likeness,
    likeliest,
)
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.records import Entity, EntityScope

COUNTRIES: Final = "countries"
LIKE_NAMES: Final = 30_000
"""Names that a value is compared with which names no country."""

__all__ = [
    "COUNTRIES",
    "CellValueResolver",
    "Entities",
    "ImportContext",
    "Resolution",
    "check_decision",
    "resolver_of",
    "scope_of",
]


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
    """The resolver that a field names: `countries`, or any other kind of rows by their names."""
    return Countries() if name == COUNTRIES else Entities(name)


def scope_of(field: SheetField, context: ImportContext) -> EntityScope:
    """Which rows the cells of a field may refer to.

    Raises:
        ValueError: Cells of this field refer to nothing.
    """
    if field.resolver is None:
        raise ValueError(f"{field.name} has no resolver")
    return EntityScope(field.resolver, context.organisation_id, context.context_id)


def check_decision(
    field: SheetField, decision: CellDecision, entities: Mapping[int, Entity]
) -> str | None:
    """Why a decision about a value cannot be taken; None: it can, whatever the value is.

    Args:
        field: The field whose value it is.
        decision: A person's decision.
        entities: The candidates of the field, by id.
    """
    if not has_one_choice(decision):
        return f"value {decision.id}: set exactly one of {CHOICES}"
    if decision.create and not field.creates:
        return (
            f"value {decision.id}: {field.title} takes what is there already; "
            "choose a candidate or ignore the value"
        )
    if decision.target_id is not None and decision.target_id not in entities:
        return (
            f"value {decision.id}: there is no {field.title} {decision.target_id} to choose; "
            "take one of the candidates"
        )
    return None
