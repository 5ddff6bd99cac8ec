"""The page of one batch: line, resources, queues, documents; answers and a cancel."""

from typing import Annotated, Final

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from contracts.batches import CancelMode, DocumentState
from workers.gateway.batches.pages.plot import depth_plot
from workers.gateway.pages.site import Site
from workers.services.batches.overview import BatchOverview, key_of
from workers.services.errors import Refused
from workflows.parking import Decision

_LONGEST_REASON: Final = 500


class BatchPages:
    """Shows a batch in whatever state it is.

    Args:
        site: The context of the pages.
        service: Of cases and batches.
    """

    def __init__(self, site: Site, service: BatchOverview) -> None:
        self._site = site
        self._service = service

    async def show(
        self,
        request: Request,
        case: int,
        batch: int,
        state: DocumentState | None = None,
        after: Annotated[str, Query(max_length=300)] = "",
    ) -> Response:
        """The page; of its documents those in a state, behind one."""
        key = key_of(case, batch)
        visitor = await self._site.visitor(request)
        found = await self._service.get(visitor.who, key)
        documents = await self._service.documents(visitor.who, key, state, after)
        report = found.status
        return self._site.page(
            request,
            visitor,
            "batch.html",
            batch=found,
            key=key,
            address=f"/batches/{case}/{batch}",
            report=report,
            plot=depth_plot(report.depths) if report else None,
            documents=documents.documents,
            next=documents.after,
            after=after,
            only=state,
        )

    async def answer(self, request: Request, case: int, batch: int) -> Response:
        """Answer a batch that is parked."""
        key = key_of(case, batch)
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        decision = form.text("decision", 20)
        if decision not in tuple(Decision):
            raise Refused(f"“{decision}” is no answer to a parked batch")
        reason = form.text("reason", _LONGEST_REASON) or None
        await self._service.answer(visitor.who, key, Decision(decision), reason)
        return RedirectResponse(f"/batches/{case}/{batch}", 303)

    async def cancel(self, request: Request, case: int, batch: int) -> Response:
        """Cancel a batch that has not ended."""
        key = key_of(case, batch)
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        mode = form.text("mode", 20)
        if mode not in tuple(CancelMode):
            raise Refused(f"“{mode}” is no way to cancel a batch")
        reason = form.text("reason", _LONGEST_REASON) or None
        await self._service.cancel(visitor.who, key, CancelMode(mode), reason)
        return RedirectResponse(f"/batches/{case}/{batch}", 303)
