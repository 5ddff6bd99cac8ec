"""The list of imports."""

from typing import Annotated, Final

from fastapi import Query, Request, Response

from contracts.spreadsheets import SpreadsheetState
from workers.gateway.pages.site import Site
from workers.services.spreadsheets.service import SpreadsheetService

_PAGE_SIZE: Final = 20


class ImportListPage:
    """Imports, the newest first."""

    def __init__(self, site: Site, service: SpreadsheetService) -> None:
        self._site = site
        self._service = service

    async def show(
        self,
        request: Request,
        state: SpreadsheetState | None = None,
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """Imports of the visitor's organisations."""
        visitor = await self._site.visitor(request)
        found = await self._service.list(visitor.who, state=state, page=page, size=_PAGE_SIZE)
        return self._site.page(
            request,
            visitor,
            "imports.html",
            found=found,
            state=state,
            page=page,
            size=_PAGE_SIZE,
            titles={each.name: each.title for each in self._service.types()},
        )
