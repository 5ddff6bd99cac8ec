"""Rows that cells can refer to, and what a run knows about its context."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from domain.spreadsheets.fields import written
from domain.spreadsheets.match_keys import value_key
from domain.spreadsheets.records import CustomList, Entity, RememberedValue
from domain.spreadsheets.similarity import NAME_WITH_MORE, Lookalikes
from domain.tabular.fields import normalise

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
    """

    organisation_id: int
    context_id: int | None
    today: date
    entities: Mapping[str, Sequence[Entity]] = field(default_factory=dict[str, Sequence[Entity]])
    remembered: Mapping[str, Mapping[str, RememberedValue]] = field(
        default_factory=dict[str, Mapping[str, RememberedValue]]
    )
    custom_lists: Sequence[CustomList] = ()
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
