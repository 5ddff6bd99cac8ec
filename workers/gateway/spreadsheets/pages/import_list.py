"""The list of imports."""

from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from adapters.database.spreadsheets.records import ImportFilter, ImportSorting
from contracts.spreadsheets import SpreadsheetState, TypeName
from workers.gateway.pages.language import N_
from workers.gateway.pages.site import Site
from workers.services.spreadsheets.service import SpreadsheetService

_PAGE_SIZE: Final = 20


@dataclass(frozen=True, slots=True)
class ListPlace:
    """Which imports the page shows.

    Attributes:
        wanted: Which of them, and in which order.
        mine: Only those that the visitor has uploaded.
    """

    wanted: ImportFilter
    mine: bool

    def address(self, **changes: object) -> str:
        """The list with something changed, ready for a further parameter; "" takes it out."""
        wanted = self.wanted
        shown: dict[str, object] = {
            "q": wanted.text,
            "state": wanted.state and wanted.state.value,
            "type": wanted.import_type,
            "context": wanted.context_id,
            "mine": "true" if self.mine else "",
            "sort": "" if wanted.sorting is ImportSorting.NEWEST else wanted.sorting.value,
        }
        kept = {name: value for name, value in (shown | changes).items() if value}
        return f"/imports?{urlencode(kept)}{'&' if kept else ''}"

    @property
    def is_narrowed(self) -> bool:
        """Whether imports are left out."""
        wanted = self.wanted
        return bool(
            self.mine or wanted.text or wanted.state or wanted.import_type or wanted.context_id
        )


class ImportListPage:
    """Imports, a page at a time."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def show(
        self,
        request: Request,
        q: Annotated[str, Query(max_length=200)] = "",
        state: SpreadsheetState | None = None,
        type: TypeName | None = None,
        context: Annotated[int | None, Query(ge=1, le=2**53)] = None,
        mine: bool = False,
        sort: ImportSorting = ImportSorting.NEWEST,
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """Imports of the visitor's organisations."""
        visitor = await self._site.visitor(request)
        by = visitor.who.subject if mine else None
        wanted = ImportFilter(state, type, context, by, q.strip(), sort)
        found = await self._service.list(visitor.who, wanted, page=page, size=_PAGE_SIZE)
        return self._site.page(
            request,
            visitor,
            "imports.html",
            found=found,
            place=ListPlace(wanted, mine),
            sortings=_SORTINGS,
            contexts=await self._service.context_names(visitor.who, found.items),
            page=page,
            size=_PAGE_SIZE,
            titles={each.name: each.title for each in self._service.types()},
        )


_SORTINGS: Final = {
    ImportSorting.NEWEST: N_("Newest first"),
    ImportSorting.OLDEST: N_("Oldest first"),
    ImportSorting.FILENAME: N_("By file name"),
}
