"""What the status rows of spreadsheet imports show; needs the database alone."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from activities.spreadsheets.import_rows import EVERY_IMPORT, SqlSpreadsheetStatuses
from activities.spreadsheets.records import ImportFilter, Page, SpreadsheetRow, UndoView
from workers.shared.services.errors import NotFound, no_role
from workers.shared.services.identity import VIEWER, Identity

LARGEST_PAGE: Final = 200
"""Items of one page."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class SpreadsheetStatuses:
    """Where imports stand.

    Each method is given who asks. An import of an organisation that is not theirs does not exist
    for them (`NotFound`), nor does one of another session for who has an upload token.
    """

    def __init__(self, rows: SqlSpreadsheetStatuses) -> None:
        self._rows = rows

    async def list(
        self,
        who: Identity,
        wanted: ImportFilter = EVERY_IMPORT,
        *,
        organisation: int | None = None,
        page: int = 0,
        size: int = 20,
    ) -> Page[SpreadsheetRow]:
        """Imports of their organisations.

        Args:
            who: Who asks.
            wanted: Which of them, and in which order.
            organisation: Only of this one; one that is not theirs has none.
            page: From 0.
            size: Items of a page, at most 200.
        """
        mine = self._mine(who, organisation)
        return await self._rows.list(mine, wanted, page=page, size=min(size, LARGEST_PAGE))

    async def newest(
        self,
        who: Identity,
        wanted: ImportFilter,
        *,
        organisation: int | None,
        behind: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[SpreadsheetRow]:
        """Imports of their organisations, the newest first, uncounted.

        Args:
            who: Who asks.
            wanted: Which of them; their order does not count.
            organisation: Only of this one; one that is not theirs has none.
            behind: Creation and uuid of the last one of the page before; None: the first page.
            limit: At most so many.
        """
        mine = self._mine(who, organisation)
        return await self._rows.newest(mine, wanted, behind=behind, limit=limit)

    @staticmethod
    def _mine(who: Identity, organisation: int | None) -> Sequence[int]:
        if not who.may_read:
            raise no_role()
        return [id for id in who.where(VIEWER) if organisation in (None, id)]

    async def get(self, who: Identity, uuid: str) -> SpreadsheetRow:
        """The status of an import; answered for purged ones as well."""
        if not who.may_read:
            raise no_role()
        row = None
        if _UUID.fullmatch(uuid):
            row = await self._rows.get(uuid, who.where(VIEWER))
        if row is None or not who.sees_upload_by(row.by):
            raise NotFound("there is no such import in your organisations")
        return row

    async def undo_view(self, who: Identity, uuid: str) -> UndoView | None:
        """How far an undo has come; None: none was requested."""
        await self.get(who, uuid)
        return await self._rows.undo(uuid)
