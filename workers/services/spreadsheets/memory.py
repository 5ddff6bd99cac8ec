"""What docflow has learnt of people's decisions: to see, correct and forget."""

from collections.abc import Sequence
from datetime import UTC, datetime

from adapters.database.spreadsheets.records import (
    LearntColumn,
    LearntEdit,
    LearntValue,
    Page,
)
from adapters.database.spreadsheets.store import SqlSpreadsheetStore
from domain.spreadsheets.entities import ImportContext
from domain.spreadsheets.fields import SheetField
from domain.spreadsheets.match_keys import header_key, value_key
from domain.spreadsheets.resolution import resolver_of, scope_of
from domain.spreadsheets.sheet_types import SheetTypes
from workers.services.errors import Forbidden, Refused, no_role
from workers.services.identity import Identity
from workers.services.spreadsheets.statuses import LARGEST_PAGE


class SpreadsheetMemory:
    """Decisions that hold for the next files of an organisation.

    Each method is given who asks; what an organisation that is not theirs has learnt does not
    exist for them.

    Args:
        store: Tables.
        types: The import types there are.
    """

    def __init__(self, store: SqlSpreadsheetStore, types: SheetTypes) -> None:
        self._store = store
        self._memory = store.memory
        self._types = types

    async def columns(
        self,
        who: Identity,
        *,
        organisation: int | None = None,
        import_type: str | None = None,
        query: str = "",
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntColumn]:
        """Headers that were decided about, the newest first."""
        return await self._memory.columns(
            _mine(who, organisation), import_type, query, page=page, size=min(size, LARGEST_PAGE)
        )

    async def values(
        self,
        who: Identity,
        *,
        organisation: int | None = None,
        import_type: str | None = None,
        query: str = "",
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntValue]:
        """Values that were decided about, the newest first."""
        return await self._memory.values(
            _mine(who, organisation), import_type, query, page=page, size=min(size, LARGEST_PAGE)
        )

    async def edits(
        self,
        who: Identity,
        *,
        organisation: int | None = None,
        import_type: str | None = None,
        page: int = 0,
        size: int = 50,
    ) -> Page[LearntEdit]:
        """Changes of whole columns that are suggested in reviews, the newest first."""
        return await self._store.reviews.learnt(
            _mine(who, organisation), import_type, page, min(size, LARGEST_PAGE)
        )

    async def forget_edit(
        self, who: Identity, organisation: int | None, import_type: str, about: str
    ) -> None:
        """No longer suggest a change; nothing happens where there is none of this key.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: The organisation is not theirs.
        """
        await self._store.reviews.forget_learnt(_owner(who, organisation), import_type, about)

    async def learn_column(
        self,
        who: Identity,
        organisation: int | None,
        import_type: str,
        header: str,
        target: str | None,
    ) -> LearntColumn:
        """Decide what a header means from now on.

        Args:
            who: Who decides.
            organisation: For whom; None: the first one of theirs.
            import_type: Name of the import type.
            header: As in files.
            target: The field; None: such columns are left out.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: There is no such type or field, the organisation is not theirs, or the header
                is blank.
        """
        owner = _owner(who, organisation)
        fields = await self._fields(owner, import_type)
        if not header_key(header):
            raise Refused("header: is blank")
        if target is not None and target not in fields:
            raise Refused(f"targetField: {import_type} has no field {target}")
        now = datetime.now(UTC)
        learnt = LearntColumn(owner, import_type, header, target, who.subject, now)
        await self._memory.learn_column(learnt)
        return learnt

    async def learn_value(
        self,
        who: Identity,
        organisation: int | None,
        import_type: str,
        field: str,
        value: str,
        target_name: str | None,
    ) -> LearntValue:
        """Decide what a value means from now on.

        Args:
            who: Who decides.
            organisation: For whom; None: the first one of theirs.
            import_type: Name of the import type.
            field: Name of the field.
            value: As in files.
            target_name: Name of the row that it means, in whatever event; None: it is left empty.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: There is no such type, field or row, the organisation is not theirs, or the
                value is blank.
        """
        owner = _owner(who, organisation)
        known = (await self._fields(owner, import_type)).get(field)
        if known is None or known.resolver is None:
            raise Refused(f"targetField: {import_type} has no field {field} that refers to rows")
        if not value_key(value):
            raise Refused("sourceValue: is blank")
        now = datetime.now(UTC)
        id = None if target_name is None else await self._row_id(owner, known, target_name)
        learnt = LearntValue(owner, import_type, field, value, id, target_name, who.subject, now)
        await self._memory.learn_value(learnt)
        return learnt

    async def forget_column(
        self, who: Identity, organisation: int | None, import_type: str, header: str
    ) -> None:
        """Forget what a header means; nothing happens where nothing was known of it.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: The organisation is not theirs.
        """
        await self._memory.forget_column(_owner(who, organisation), import_type, header)

    async def forget_value(
        self, who: Identity, organisation: int | None, import_type: str, field: str, value: str
    ) -> None:
        """Forget what a value means; nothing happens where nothing was known of it.

        Raises:
            Forbidden: The roles do not allow it.
            Refused: The organisation is not theirs.
        """
        await self._memory.forget_value(_owner(who, organisation), import_type, field, value)

    async def _fields(self, organisation: int, import_type: str) -> dict[str, SheetField]:
        if import_type not in self._types:
            raise Refused(f"importType: there is no import type {import_type}")
        lists = await self._store.custom_lists(organisation)
        return {each.name: each for each in self._types.get(import_type).fields_for(lists)}

    async def _row_id(self, organisation: int, field: SheetField, name: str) -> int | None:
        """The row of a name; None where rows belong to an event, each of which has its own."""
        today = datetime.now(UTC).date()
        bare = ImportContext(organisation, None, today)
        scope = scope_of(field, bare)
        rows = await self._store.entities(scope)
        if not rows:
            return None
        found = resolver_of(scope.kind).resolve(
            name, ImportContext(organisation, None, today, {scope.kind: rows})
        )
        if found.target is None:
            raise Refused(f"targetName: there is no {field.title} {name!r}")
        return found.target.id


def _mine(who: Identity, organisation: int | None) -> Sequence[int]:
    if not who.may_read:
        raise no_role()
    return [id for id in who.organisations if organisation in (None, id)]


def _owner(who: Identity, organisation: int | None) -> int:
    if not who.may_write:
        raise Forbidden("your roles allow reading only; ask for the role importer")
    if organisation is None and who.organisations:
        return who.organisations[0]
    if organisation is None or organisation not in who.organisations:
        raise Refused("organisationId: is not one of yours")
    return organisation
