"""The form that a person sends an event with."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast
from uuid import uuid4

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from activities.transfers.cloud_events import ATTRIBUTES, NoEvent, read_event
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.pages.renderer import gettext
from workers.shared.gateway.pages.site import Alert, Site, Visitor, field_problem, sentence
from workers.shared.services.errors import Forbidden, Refused, ServiceError
from workers.shared.services.identity import require_operator
from workers.transfers.service import TransferService
from workflows.transfers.events import ACCOUNT, EVENT_BYTES

ADDRESS: Final = "/runs/new/event"
WAY_IN: Final = "page"
_FIELDS: Final = (*ATTRIBUTES, ACCOUNT, "path", "time", "data", "organisation")
_REQUIRED: Final = (*ATTRIBUTES, ACCOUNT)


class NewEvent:
    """The form, and what becomes of it.

    Args:
        site: The context of the pages.
        service: Of transfers.
    """

    def __init__(self, site: Site, service: TransferService) -> None:
        self._site = site
        self._service = service

    async def show(self, request: Request) -> Response:
        """A form with an id that no other event has."""
        visitor = await self._site.visitor(request)
        require_operator(visitor.who, "transfers")
        return await self._page(request, visitor, {"id": str(uuid4())}, {})

    async def submit(self, request: Request, act: TheAct) -> Response:
        """Have the event carried out, and go to the page of its run."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        given = {name: form.text(name, EVENT_BYTES) for name in _FIELDS}
        missing = {name: gettext("Fill this in.") for name in _REQUIRED if not given[name]}
        problems = {**missing, **_odd_data(given["data"])}
        if problems:
            return await self._page(request, visitor, given, problems)
        try:
            body = json.dumps(_event(given), ensure_ascii=False)
            _refuse_no_event(body)
            owner = form.whole("organisation")
            sent = await self._service.submit(visitor.who, body, WAY_IN, owner)
        except Forbidden:
            raise
        except ServiceError as error:
            beside = field_problem(error, _FIELDS)
            return await self._page(request, visitor, given, beside, error)
        act.object = sent.workflow_id
        return RedirectResponse(f"/runs/{sent.workflow_id}", 303)

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        given: Mapping[str, str],
        problems: Mapping[str, str],
        error: ServiceError | None = None,
    ) -> Response:
        alert, status = None, 200
        if error is not None or problems:
            status = Refused.status if error is None else error.status
            text = gettext("Nothing was sent. Correct what is marked.")
            if error is not None and not problems:
                text = sentence(error)
            alert = Alert(gettext("The event was not sent"), text)
        return self._site.page(
            request,
            visitor,
            "new_event.html",
            status,
            problem=alert,
            problems=problems,
            given=given,
            several=bool(visitor.who.organisations),
        )


def _odd_data(text: str) -> Mapping[str, str]:
    try:
        if not text or isinstance(json.loads(text), dict):
            return {}
    except (ValueError, RecursionError):
        pass
    return {"data": gettext('Write a JSON object, as {"size": 5}.')}


def _event(given: Mapping[str, str]) -> Mapping[str, Any]:
    """A CloudEvent in structured mode."""
    data = cast("dict[str, Any]", json.loads(given["data"] or "{}"))
    data |= {name: given[name] for name in (ACCOUNT, "path") if given[name]}
    time = {"time": given["time"]} if given["time"] else {}
    return {
        "specversion": "1.0",
        **{name: given[name] for name in ATTRIBUTES},
        **time,
        "data": data,
    }


def _refuse_no_event(body: str) -> None:
    """Refuse what is no event, before it is recorded as one.

    Raises:
        Refused: It is none.
    """
    try:
        read_event(body, datetime.now(UTC))
    except NoEvent as error:
        raise Refused(str(error)) from error
