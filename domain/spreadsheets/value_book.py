"""What the values of a run mean."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from contracts.spreadsheets import CellMapping, MappingStatus
from domain.spreadsheets.entities import EXACT, REMEMBERED, ImportContext
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.match_keys import value_key
from domain.spreadsheets.records import Entity, FoundValue, RememberedValue
from domain.spreadsheets.resolution import CellValueResolver, Resolution, resolver_of
from domain.tabular.blanks import is_blank
from domain.tabular.rows import Cell
from domain.tabular.values import readable

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


IGNORED: Final = NoEntity.IGNORED
OPEN: Final = NoEntity.OPEN
TO_CREATE: Final = NoEntity.TO_CREATE
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
    """

    def __init__(
        self,
        fields: Sequence[SheetField],
        context: ImportContext,
        resolvers: Mapping[str, CellValueResolver] | None = None,
        *,
        counting: bool = False,
    ) -> None:
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
        taken = [self._report(field, text, rows) for (field, text), rows in self._rows.items()]
        self._rows.clear()
        if len(self._found) > OPEN_KEPT:
            self._found.clear()
        return taken

    def _ask(self, field: str, text: str) -> Resolution:
        remembered = self._remembered[field].get(value_key(text))
        if remembered == LEFT_EMPTY:
            return Resolution(None, REMEMBERED, ignored=True)
        resolution = self._resolvers[field].resolve(text, self._context)
        if resolution.target is not None:
            return resolution
        entity = None if remembered is None else self._remembered_entity(field, remembered)
        if entity is not None:
            return Resolution(entity, REMEMBERED)
        if is_blank(text, self._fields[field].spec):
            return Resolution(None, EXACT, ignored=True)
        return resolution

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
