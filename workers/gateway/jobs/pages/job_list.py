"""The list of jobs."""

from typing import Final
from urllib.parse import urlencode

from fastapi import Request, Response

from contracts.jobs import JobStatus
from workers.gateway.http.cursors import Before, cursor_of
from workers.gateway.pages.site import Site
from workers.services.jobs.service import JobService

_PAGE_SIZE: Final = 20


class JobListPage:
    """Jobs, the newest change first."""

    def __init__(self, site: Site, service: JobService) -> None:
        self._site = site
        self._service = service

    async def show(
        self, request: Request, status: JobStatus | None = None, before: Before = None
    ) -> Response:
        """Jobs of a status, or all."""
        visitor = await self._site.visitor(request)
        found = await self._service.queries.list(
            visitor.who, status=status, before=cursor_of(before), limit=_PAGE_SIZE
        )
        query = {"status": status.value} if status else {}
        older = None
        if found.next is not None:
            older = f"/jobs?{urlencode({**query, 'before': str(found.next)})}"
        newest = f"/jobs?{urlencode(query)}" if before else None
        return self._site.page(
            request,
            visitor,
            "jobs.html",
            jobs=found.jobs,
            only=status,
            older=older,
            newest=newest,
        )
