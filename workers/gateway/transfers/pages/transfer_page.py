"""The page of one transfer: its actions, its receipt, and what a person can have done with it."""

from collections.abc import Awaitable
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from workers.gateway.pages.forms import Form
from workers.gateway.pages.language import gettext
from workers.gateway.pages.site import Alert, Site, Visitor, sentence
from workers.services.errors import NotFound, Refused, ServiceError
from workers.services.transfers.overview import TransferPageService
from workflows.parking import Decision

_REASON: Final = 500
_CORRECTION: Final = 20_000
"""Characters of the corrected settings of an action."""
_DRAFT: Final = ("reason", "correction", "queue", "partner")
"""Fields that keep what was typed where an answer is refused."""


class TransferPage:
    """Shows a transfer in whatever state it is.

    Args:
        site: The context of the pages.
        service: What it shows and does.
    """

    def __init__(self, site: Site, service: TransferPageService) -> None:
        self._site = site
        self._service = service

    async def show(self, request: Request, transfer: str) -> Response:
        """The page; of an event that no worker has checked, what Temporal knows."""
        visitor = await self._site.visitor(request)
        try:
            return await self._page(request, visitor, transfer)
        except NotFound:
            accepted = await self._service.accepted(visitor.who, transfer)
        return self._site.page(request, visitor, "transfer_accepted.html", accepted=accepted)

    async def answer(self, request: Request, transfer: str) -> Response:
        """Answer a run that is parked."""
        visitor, form = await self._form(request)
        decision = form.text("decision", 20)
        if decision not in tuple(Decision):
            raise Refused(gettext("“%(text)s” is no answer to a transfer", text=decision))
        done = self._service.answer(
            visitor.who,
            transfer,
            Decision(decision),
            reason=form.text("reason", _REASON) or None,
            correction=form.text("correction", _CORRECTION),
            settings=form.text("settings") == "again",
        )
        return await self._done(request, visitor, transfer, form, done)

    async def assign(self, request: Request, transfer: str) -> Response:
        """Name the queue of it."""
        visitor, form = await self._form(request)
        reason = form.text("reason", _REASON) or None
        done = self._service.assign(visitor.who, transfer, form.text("queue"), reason)
        return await self._done(request, visitor, transfer, form, done)

    async def reroute(self, request: Request, transfer: str) -> Response:
        """Have the rules looked at again."""
        visitor, form = await self._form(request)
        [found] = await self._service.reroute(visitor.who, transfer)
        if found.problem is not None:
            alert = Alert(gettext("The rules were not looked at again"), found.problem)
            return await self._page(request, visitor, transfer, alert, form, status=503)
        return RedirectResponse(_address(transfer), 303)

    async def cancel(self, request: Request, transfer: str) -> Response:
        """Begin no further action."""
        visitor, form = await self._form(request)
        done = self._service.cancel(visitor.who, transfer, form.text("reason", _REASON) or None)
        return await self._done(request, visitor, transfer, form, done)

    async def resend(self, request: Request, transfer: str) -> Response:
        """Send the kept copy again; the page of the transfer that does."""
        visitor, form = await self._form(request)
        partner = form.text("partner") or None
        try:
            sent = await self._service.resend(visitor.who, transfer, partner)
        except ServiceError as error:
            return await self._refused(request, visitor, transfer, form, error)
        return RedirectResponse(_address(sent.transfer_id), 303)

    async def redrive(self, request: Request, transfer: str) -> Response:
        """Carry out a failed one anew; the page of the transfer that does."""
        visitor, form = await self._form(request)
        first = form.whole("from_action")
        try:
            id = await self._service.redrive(visitor.who, transfer, first)
        except ServiceError as error:
            return await self._refused(request, visitor, transfer, form, error)
        return RedirectResponse(_address(id), 303)

    async def _form(self, request: Request) -> tuple[Visitor, Form]:
        visitor = await self._site.visitor(request)
        return visitor, await self._site.form(request, visitor)

    async def _done(
        self,
        request: Request,
        visitor: Visitor,
        transfer: str,
        form: Form,
        work: Awaitable[object],
    ) -> Response:
        try:
            await work
        except ServiceError as error:
            return await self._refused(request, visitor, transfer, form, error)
        return RedirectResponse(_address(transfer), 303)

    async def _refused(
        self, request: Request, visitor: Visitor, transfer: str, form: Form, error: ServiceError
    ) -> Response:
        """The page as it is now, with what was typed and why it was not done."""
        alert = Alert(error.title, sentence(error))
        return await self._page(request, visitor, transfer, alert, form, status=error.status)

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        transfer: str,
        problem: Alert | None = None,
        form: Form | None = None,
        status: int = 200,
    ) -> Response:
        found = await self._service.get(visitor.who, transfer)
        typed: dict[str, Any] = {} if form is None else dict(form.fields)
        return self._site.page(
            request,
            visitor,
            "transfer.html",
            status,
            found=found,
            row=found.details.row,
            run=found.details.view,
            address=_address(found.details.row.transfer_id),
            queues=self._service.queues,
            problem=problem,
            draft={name: typed.get(name, "") for name in _DRAFT},
        )


def _address(transfer: str) -> str:
    return f"/transfers/{transfer}"
