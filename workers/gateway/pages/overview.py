"""The inbox and the list of imports."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import Query, Request, Response

from contracts.spreadsheets import SpreadsheetState
from workers.gateway.pages.renderer import is_fragment
from workers.gateway.pages.site import Site
from workers.gateway.pages.spreadsheets import labels
from workers.services.inbox import InboxEntry

_PAGE_SIZE: Final = 20


@dataclass(frozen=True, slots=True)
class Waiting:
    """A line of the inbox."""

    key: str
    title: str
    kind: str
    state: str
    waiting_since: datetime
    whom: str
    address: str | None
    apart: bool
    """The address is another site's."""


class OverviewPages:
    """What there is, and what of it waits for a person."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def inbox(self, request: Request) -> Response:
        """Runs of every pipeline that wait for a person; a script gets the table alone."""
        visitor = await self._site.visitor(request)
        entries = [self._waiting(entry) for entry in await self._site.service.inbox(visitor.who)]
        template = "inbox_entries.html" if is_fragment(request) else "inbox.html"
        return self._site.page(request, visitor, template, entries=entries)

    async def imports(
        self,
        request: Request,
        state: SpreadsheetState | None = None,
        page: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> Response:
        """Imports of the visitor's organisations."""
        visitor = await self._site.visitor(request)
        found = await self._site.service.list(visitor.who, state=state, page=page, size=_PAGE_SIZE)
        return self._site.page(
            request,
            visitor,
            "imports.html",
            found=found,
            state=state,
            page=page,
            size=_PAGE_SIZE,
            titles=self.titles(),
        )

    def titles(self) -> dict[str, str]:
        """What import types are called."""
        return {each.name: each.title for each in self._site.service.types()}

    def _waiting(self, entry: InboxEntry) -> Waiting:
        title = labels.type_title(entry.document_type, self.titles())
        return Waiting(
            key=f"run-{entry.run_id}",
            title=entry.title,
            kind=f"{entry.kind} · {title}",
            state=labels.waiting_state(entry.state, ended=entry.ended),
            waiting_since=entry.waiting_since,
            whom=entry.waiting_for or "any operator",
            address=entry.page or self._temporal(entry),
            apart=entry.page is None,
        )

    def _temporal(self, entry: InboxEntry) -> str | None:
        """Page of a run in Temporal's own user interface."""
        base = self._site.service.settings.temporal_ui
        if base is None:
            return None
        namespace = quote(self._site.namespace, safe="")
        run = f"{quote(entry.workflow_id, safe='')}/{quote(entry.run_id, safe='')}"
        return f"{base}/namespaces/{namespace}/workflows/{run}"
