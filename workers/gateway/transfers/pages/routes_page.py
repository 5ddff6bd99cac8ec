"""The page of routes: rules, what nothing matched, and which rule takes an event."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse

from contracts.transfers import ANY, EVENT_BYTES, RouteRule
from workers.gateway.pages.site import Alert, Site, Visitor
from workers.services.errors import Refused
from workers.services.identity import Identity
from workers.services.transfers.routes import RouteListing, RouteService, read_key
from workers.services.transfers.service import Rerouted

_PAGE: Final = 100
_FIELDS: Final = ("queue", "rule", "account_id", "source", "type", "subject", "priority")

Text = Annotated[str, Query(max_length=500)]


class RoutesPage:
    """Shows rules and what people do with them.

    Args:
        site: The context of the pages.
        service: Of routes.
        reroute: Has the rules looked at again for every event that waits for a queue.
    """

    def __init__(
        self,
        site: Site,
        service: RouteService,
        reroute: Callable[[Identity], Awaitable[Sequence[Rerouted]]],
    ) -> None:
        self._site = site
        self._service = service
        self._reroute = reroute

    async def show(
        self,
        request: Request,
        queue: Text = "",
        find: Text = "",
        page: Annotated[int, Query(ge=0, le=10_000)] = 0,
    ) -> Response:
        """Rules, filtered; further parameters fill the form of a new rule."""
        visitor = await self._site.visitor(request)
        draft = {name: request.query_params.get(f"new_{name}", "")[:500] for name in _FIELDS}
        return await self._page(request, visitor, queue, find, page, draft=draft)

    async def add(self, request: Request) -> Response:
        """Add a rule; what is refused stays in the form."""
        visitor, form = await self._form(request)
        draft = {name: form.text(f"new_{name}", 500) for name in _FIELDS}
        given: dict[str, Any] = {name: value for name, value in draft.items() if value}
        try:
            added = await self._service.add(visitor.who, given)
        except Refused as error:
            refused = Alert("This rule was not added", _sentence(error))
            return await self._page(
                request, visitor, draft=draft, problem=refused, status=error.status
            )
        return RedirectResponse(f"/routes?{urlencode({'queue': added.queue})}#rules", 303)

    async def change(self, request: Request) -> Response:
        """Enable, disable or remove a rule."""
        visitor, form = await self._form(request)
        queue, rule, verb = (form.text(name) for name in ("queue", "rule", "verb"))
        try:
            if verb == "remove":
                await self._service.remove(visitor.who, queue, rule)
            else:
                await self._service.enable(visitor.who, queue, rule, enabled=verb == "enable")
        except Refused as error:
            refused = Alert("This rule was not changed", _sentence(error))
            return await self._page(request, visitor, queue, problem=refused, status=error.status)
        return RedirectResponse(f"/routes?{urlencode({'queue': queue})}#rules", 303)

    async def test(self, request: Request) -> Response:
        """Which rule takes an event that was pasted."""
        visitor, form = await self._form(request)
        event = form.text("event", EVENT_BYTES)
        try:
            verdict = await self._service.test(visitor.who, read_key(event.encode()))
        except Refused as error:
            refused = Alert("This event cannot be routed", _sentence(error))
            return await self._page(
                request, visitor, event=event, problem=refused, status=error.status
            )
        return await self._page(request, visitor, event=event, verdict=verdict)

    async def reroute(self, request: Request) -> Response:
        """Look at the rules again for the events that none has matched."""
        visitor, _ = await self._form(request)
        done = await self._reroute(visitor.who)
        failed = [each for each in done if each.problem is not None]
        if failed:
            first = f"{failed[0].transfer_id[:12]}: {failed[0].problem}"
            few = Alert(f"{len(failed)} of {len(done)} events were not routed again", first)
            return await self._page(request, visitor, problem=few, status=503)
        return await self._page(request, visitor, rerouted=len(done))

    async def _form(self, request: Request) -> tuple[Visitor, Any]:
        visitor = await self._site.visitor(request)
        return visitor, await self._site.form(request, visitor)

    async def _page(
        self,
        request: Request,
        visitor: Visitor,
        queue: str = "",
        find: str = "",
        page: int = 0,
        status: int = 200,
        **context: Any,
    ) -> Response:
        found = await self._service.listing(visitor.who, queue or None)
        rules = [each for each in found.rules if _holds(each, find)]
        address = "/routes?" + "".join(
            urlencode({name: value}) + "&"
            for name, value in (("queue", queue), ("find", find))
            if value
        )
        return self._site.page(
            request,
            visitor,
            "routes.html",
            status,
            None,
            **{
                "draft": dict.fromkeys(_FIELDS, ""),
                "event": "",
                "verdict": None,
                "problem": None,
                "rerouted": None,
                **context,
            },
            queue=queue,
            find=find,
            queues=self._service.queues,
            rules=rules[page * _PAGE : (page + 1) * _PAGE],
            total=len(rules),
            page=page,
            size=_PAGE,
            address=address,
            remarks=_remarks(found),
            unmatched=await self._service.unmatched(visitor.who),
            trail=await self._service.trail(visitor.who, 20),
            any=ANY,
        )


def _holds(rule: RouteRule, find: str) -> bool:
    wanted = find.strip().casefold()
    texts = (rule.queue, rule.rule, rule.account_id, rule.source, rule.type, rule.subject)
    return not wanted or any(wanted in each.casefold() for each in texts)


def _remarks(found: RouteListing) -> list[str]:
    """What is wrong with rules, in words."""
    unusable = [
        f"{each.queue}/{each.rule} never takes an event: {each.reason}." for each in found.unusable
    ]
    ties = [
        f"{one.queue}/{one.rule} and {other.queue}/{other.rule} could take the same event; "
        "the first of them gets it."
        for one, other in found.ties
    ]
    return unusable + ties


def _sentence(error: Refused) -> str:
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}."
