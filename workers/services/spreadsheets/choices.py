"""What columns and values of an import may mean."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from activities.spreadsheets.contexts import fields_of, load_context
from adapters.database.spreadsheets.store import SqlSpreadsheetStore
from adapters.database.spreadsheets.views import Difference, SpreadsheetRow
from contracts.spreadsheets import CellMapping
from domain.spreadsheets.bibs import SAME_BIB
from domain.spreadsheets.entities import CANDIDATES
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.people import PERSON
from domain.spreadsheets.plain_words import (
    column_title,
    column_titles,
    record_title,
    shown_value,
)
from domain.spreadsheets.records import Entity
from domain.spreadsheets.resolution import resolver_of
from domain.spreadsheets.sheet_types import SheetTypes
from domain.spreadsheets.types.base import SheetType
from workers.services.errors import Refused, WrongState


@dataclass(frozen=True, slots=True)
class FieldView:
    """A field that a column may fill."""

    name: str
    title: str
    required: bool
    resolver: str | None
    """What its values refer to; None: nothing."""
    creates: bool
    """A person may have a missing candidate created."""
    examples: tuple[str, ...]
    either: str | None = None
    """A file with a column for this other field can do without."""


class Choices:
    """Fields for columns, candidates for values."""

    def __init__(self, store: SqlSpreadsheetStore, types: SheetTypes) -> None:
        self._store = store
        self._types = types

    def types(self) -> Sequence[SheetType]:
        """Every import type, by name."""
        return sorted(self._types, key=lambda kind: kind.name)

    async def fields(self, row: SpreadsheetRow) -> Sequence[FieldView]:
        """The fields that columns of an import may fill, custom lists included.

        Raises:
            WrongState: The installation does not know the type any more.
        """
        return [
            FieldView(
                *(each.name, each.title, each.required, each.resolver),
                *(each.creates, each.examples, each.either),
            )
            for each in await self.declared(row)
        ]

    async def values(self, uuid: str, ids: Sequence[int]) -> Sequence[CellMapping]:
        """Some values of an import, and what they mean; unknown ids are left out."""
        return await self._store.cell_mapping(uuid, ids)

    async def find(self, row: SpreadsheetRow, field: str, query: str) -> Sequence[Entity]:
        """Candidates for the values of a field, the likeliest first.

        Raises:
            WrongState: The installation does not know the type any more.
            Refused: There is no such field, or its values refer to nothing.
        """
        if field == PERSON.name and self._types.get(row.import_type).is_about_people:
            return await self._store.search_people(row.organisation_id, query, CANDIDATES)
        if field == SAME_BIB.name:
            # Who keeps a bib stands beside each question.
            return ()
        found = next((each for each in await self.declared(row) if each.name == field), None)
        if found is None:
            raise Refused("targetField: this import has no such field")
        if found.resolver is None:
            raise Refused(f"targetField: values of {found.title} refer to nothing")
        today = datetime.now(UTC).date()
        context = await load_context(self._store, self._types, row, today, only={field})
        # A long list takes a while to go through.
        return await asyncio.to_thread(resolver_of(found.resolver).candidates, context, query)

    async def in_words(
        self, row: SpreadsheetRow, differences: Sequence[Difference]
    ) -> Sequence[Difference]:
        """Differences with what people call their rows, columns and values."""
        known = row.import_type in self._types
        fields = column_titles(await self.declared(row) if known else ())

        def one(each: Difference) -> Difference:
            field = fields.get((each.table, each.column))
            return replace(
                each,
                record=record_title(each.table),
                title=column_title(each.column) if field is None else field.title,
                before=shown_value(field, each.before),
                after=shown_value(field, each.after),
            )

        return [one(each) for each in differences]

    async def declared(self, row: SpreadsheetRow) -> Sequence[SheetField]:
        if row.import_type not in self._types:
            raise WrongState(f"imports of type {row.import_type} are not known here any more")
        return await fields_of(self._store, self._types, row)
