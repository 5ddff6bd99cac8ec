"""The lists of batches: all of them, and those of one case."""

from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response

from contracts.batches import LoaderStatus
from workers.gateway.http.cursors import Before, cursor_of
from workers.gateway.pages.site import Site
from workers.services.batches.overview import BatchOverview, BatchPage, key_of


class BatchLists:
    """Batches, the newest change first.

    Args:
        site: The context of the pages.
        service: Of cases and batches.
    """

    def __init__(self, site: Site, service: BatchOverview) -> None:
        self._site = site
        self._service = service

    async def all(
        self, request: Request, status: LoaderStatus | None = None, before: Before = None
    ) -> Response:
        """Batches of every case, in a status or in any."""
        visitor = await self._site.visitor(request)
        found = await self._service.batches(visitor.who, status=status, before=cursor_of(before))
        query = {"status": status.value} if status else {}
        return self._site.page(
            request,
            visitor,
            "batches.html",
            **_page(found, "/batches", query, before),
            only=status,
        )

    async def case(self, request: Request, case: int, before: Before = None) -> Response:
        """Batches of one case, and which of them waits for which."""
        case = key_of(case, 1).case_id
        visitor = await self._site.visitor(request)
        found = await self._service.batches(visitor.who, case_id=case, before=cursor_of(before))
        return self._site.page(
            request,
            visitor,
            "batch_case.html",
            **_page(found, f"/batches/{case}", {}, before),
            case=case,
            line=await self._service.line(visitor.who, case),
        )


def _page(found: BatchPage, path: str, query: dict[str, str], before: str | None) -> dict[str, Any]:
    older = found.next and {**query, "before": f"{found.next}"}
    newest = f"{path}?{urlencode(query)}" if query else path
    return {
        "batches": found.batches,
        "older": f"{path}?{urlencode(older)}" if older else None,
        "newest": newest if before else None,
    }
