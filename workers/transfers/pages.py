"""What the gateway serves of transfers: one, groups of them, and routes."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from activities.transfers.operators_files import Clocks
from activities.transfers.partner_store import SqlPartnerStore
from activities.transfers.records import Transfer
from activities.transfers.store import SqlTransferStore
from activities.transfers.watch_store import SqlExpectedStore, SqlWatchStore
from workers.shared.gateway.app import GatewayPart
from workers.shared.gateway.pages.renderer import N_, MenuEntry, counted, gettext, number
from workers.shared.gateway.pages.site import (
    Alert,
    Alike,
    Fact,
    Form,
    PageRoute,
    PipelinePages,
    RunPart,
    Site,
    Visitor,
    facts_part,
    sentence,
)
from workers.shared.register import Context
from workers.shared.services.errors import NotFound, Refused, ServiceError
from workers.shared.services.identity import Identity
from workers.shared.services.run_service import RunDetails
from workers.transfers import api, labels, v1
from workers.transfers.clocks import ClockService
from workers.transfers.factory import transfer_service
from workers.transfers.new_event import ADDRESS, NewEvent
from workers.transfers.operator_pages import operator_routes
from workers.transfers.partners import PartnerRecords
from workers.transfers.redrive import Answered, ParkedGroups, Redrives
from workers.transfers.resources import route_store
from workers.transfers.routes import RouteListing, RouteService, read_key
from workers.transfers.service import Offer, Rerouted, ServedTransfers, TransferService
from workers.transfers.settings import clocks_of, queues_of
from workflows.shared.notifications import cause_key, failure_fingerprint
from workflows.shared.parking import Decision
from workflows.transfers.events import EVENT_BYTES, RouteKey
from workflows.transfers.partners import Partner
from workflows.transfers.routes import ANY, ATTRIBUTES

GROUPS: Final = "/transfers/waiting"
_SHOWN: Final = 100
_REASON: Final = 500
_DECISIONS: Final = (Decision.RETRY, Decision.FAIL)


class GroupPage:
    """Shows what waits for one cause, and answers all of it.

    Args:
        site: The context of the pages.
        groups: Of transfers.
    """

    def __init__(self, site: Site, groups: ParkedGroups) -> None:
        self._site = site
        self._groups = groups

    async def show(self, request: Request, group: str) -> Response:
        """The cause, and the transfers that have waited longest."""
        visitor = await self._site.visitor(request)
        found = await self._groups.get(visitor.who, group)
        return self._site.page(
            request,
            visitor,
            "transfer_group.html",
            group=found,
            rows=found.rows[:_SHOWN],
            address=f"{GROUPS}/{found.key}",
        )

    async def answer(self, request: Request, group: str) -> Response:
        """Give all of them one answer; how many have taken it, and why others have not."""
        visitor = await self._site.visitor(request)
        form = await self._site.form(request, visitor)
        decision = form.text("decision", 20)
        if decision not in _DECISIONS:
            raise Refused(gettext("“%(text)s” is no answer to a transfer", text=decision))
        reason = form.text("reason", _REASON) or None
        done = await self._groups.answer(visitor.who, group, Decision(decision), reason)
        problems = _problems(done)
        return self._site.page(
            request,
            visitor,
            "transfer_group_answered.html",
            503 if problems else 200,
            answered=len(done) - len(problems),
            problems=problems[:_SHOWN],
            more=max(len(problems) - _SHOWN, 0),
        )


def _problems(done: Sequence[Answered]) -> Sequence[Answered]:
    return [each for each in done if each.problem is not None]


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
            refused = Alert(gettext("This rule was not added"), sentence(error))
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
            refused = Alert(gettext("This rule was not changed"), sentence(error))
            return await self._page(request, visitor, queue, problem=refused, status=error.status)
        return RedirectResponse(f"/routes?{urlencode({'queue': queue})}#rules", 303)

    async def test(self, request: Request) -> Response:
        """Which rule takes an event whose attributes were typed, or which was pasted."""
        visitor, form = await self._form(request)
        event = form.text("event", EVENT_BYTES)
        typed = {name: form.text(f"tried_{name}", 500) for name in ATTRIBUTES}
        top = {name: text for name, text in typed.items() if name != "account_id"}
        given = event or json.dumps({**top, "data": {"accountId": typed["account_id"]}})
        try:
            key = read_key(given.encode())
            verdict = await self._service.test(visitor.who, key)
        except Refused as error:
            refused = Alert(gettext("This event cannot be routed"), sentence(error))
            return await self._page(
                request, visitor, event=event, tried=typed, problem=refused, status=error.status
            )
        return await self._page(
            request, visitor, event=event, tried=key.model_dump(), key=key, verdict=verdict
        )

    async def reroute(self, request: Request) -> Response:
        """Look at the rules again for the events that none has matched."""
        visitor, _ = await self._form(request)
        done = await self._reroute(visitor.who)
        failed = [each for each in done if each.problem is not None]
        if failed:
            first = f"{failed[0].transfer_id[:12]}: {failed[0].problem}"
            title = counted(
                "%(failed)s of %(count)s event was not routed again",
                "%(failed)s of %(count)s events were not routed again",
                len(done),
                failed=number(len(failed)),
            )
            few = Alert(title, first)
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
        found = await self._service.listing(visitor.who, queue or None, find)
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
                "tried": {
                    name: request.query_params.get(f"tried_{name}", "")[:500] for name in ATTRIBUTES
                },
                "key": None,
                "verdict": None,
                "problem": None,
                "rerouted": None,
                **context,
            },
            queue=queue,
            find=find,
            queues=self._service.queues,
            rules=found.rules[page * _PAGE : (page + 1) * _PAGE],
            total=len(found.rules),
            page=page,
            size=_PAGE,
            address=address,
            remarks=_remarks(found),
            unmatched=await self._service.unmatched(visitor.who),
            trail=await self._service.trail(visitor.who, 20),
            any=ANY,
        )


def _remarks(found: RouteListing) -> list[str]:
    """What is wrong with rules, in words."""
    unusable = [
        gettext(
            "%(rule)s never takes an event: %(reason)s.",
            rule=f"{each.queue}/{each.rule}",
            reason=each.reason,
        )
        for each in found.unusable
    ]
    ties = [
        gettext(
            "%(one)s and %(other)s could take the same event; the first of them gets it.",
            one=f"{one.queue}/{one.rule}",
            other=f"{other.queue}/{other.rule}",
        )
        for one, other in found.ties
    ]
    return unusable + ties


_CORRECTION: Final = 20_000
"""Characters of the corrected settings of an action."""
_DRAFT: Final = ("reason", "correction", "queue", "partner")
"""Fields that keep what was typed where an answer is refused."""


class TransferPage:
    """Shows a transfer in whatever state it is.

    Args:
        site: The context of the pages.
        service: Of transfers.
        redrives: Carry failed ones out anew.
        routes: Say why one has its queue.
        partners: That a copy can be sent to.
    """

    def __init__(
        self,
        site: Site,
        service: TransferService,
        redrives: Redrives,
        routes: RouteService,
        partners: PartnerRecords,
    ) -> None:
        self._site = site
        self._service, self._redrives = service, redrives
        self._routes, self._partners = routes, partners

    async def show(self, request: Request, transfer: str) -> Response:
        """The page; of an event that no worker has checked, what Temporal knows."""
        visitor = await self._site.visitor(request)
        try:
            return await self._page(request, visitor, transfer)
        except NotFound:
            accepted = await self._service.accepted(visitor.who, transfer)
        return self._site.page(request, visitor, "transfer_accepted.html", accepted=accepted)

    async def receipt(self, request: Request, transfer: str) -> Response:
        """The receipt as it was written, as a file."""
        visitor = await self._site.visitor(request)
        content = await self._redrives.written(visitor.who, transfer)
        name = "".join(filter(str.isalnum, transfer))[:12]
        headers = {
            "content-disposition": f"attachment; filename=receipt-{name}.json",
            "cache-control": "no-store",
        }
        return Response(content, headers=headers, media_type="application/json")

    async def answer(self, request: Request, transfer: str) -> Response:
        """Answer a run that is parked."""
        visitor, form = await self._form(request)
        decision = form.text("decision", 20)
        if decision not in tuple(Decision):
            raise Refused(gettext("“%(text)s” is no answer to a transfer", text=decision))
        row = await self._service.row(visitor.who, transfer)
        done = self._service.answer(
            visitor.who,
            row,
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
        row = await self._service.row(visitor.who, transfer)
        done = self._service.cancel(visitor.who, row, form.text("reason", _REASON) or None)
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
            done = await self._redrives.redrive(visitor.who, transfer, first)
        except ServiceError as error:
            return await self._refused(request, visitor, transfer, form, error)
        return RedirectResponse(_address(done.started.transfer_id), 303)

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
        found = await self._redrives.overview(visitor.who, transfer)
        key, verdict = _key_of(found.transfer), None
        if visitor.who.is_operator and key is not None:
            verdict = await self._routes.test(visitor.who, key)
        others: Sequence[Partner] = ()
        if visitor.who.is_operator and Offer.RESEND in found.transfer.offers:
            others = await self._partners.all(visitor.who)
        typed: dict[str, Any] = {} if form is None else dict(form.fields)
        return self._site.page(
            request,
            visitor,
            "transfer.html",
            status,
            found=found,
            row=found.transfer,
            address=_address(found.transfer.transfer_id),
            queues=tuple(self._service.queues),
            key=key,
            verdict=verdict,
            partners=[each.name for each in others],
            problem=problem,
            draft={name: typed.get(name, "") for name in _DRAFT},
        )


def _address(transfer: str) -> str:
    return f"/transfers/{transfer}"


def _key_of(row: Transfer) -> RouteKey | None:
    """What its event is routed by; None: it was no event, or lacks an attribute."""
    values = {name: getattr(row, name) for name in ATTRIBUTES}
    try:
        return RouteKey.model_validate(values)
    except ValidationError:
        return None


TEMPLATES: Final = Path(__file__).parent / "templates"
_DESCRIPTION: Final = (
    "Have files moved: send an event that says that one is there, and see what became of it."
)


def open_part(context: Context, settings: None) -> GatewayPart:
    """The part over the resources of a gateway.

    Args:
        context: What the process has opened.
        settings: None.
    """
    database = context.resources.database
    routes = RouteService(
        route_store(context.environment, database),
        SqlTransferStore(database),
        tuple(queues_of(context.environment)),
    )
    service = transfer_service(context.environment, context.client, database)
    blobs = context.resources.blobs
    further = {
        PartnerRecords: PartnerRecords(SqlPartnerStore(database)),
        ClockService: ClockService(
            context.client,
            clocks_of(context.environment) or Clocks({}, {}),
            SqlWatchStore(database),
            SqlExpectedStore(database),
        ),
    }
    return part_of(service, routes, Redrives(service, lambda: blobs), further)


def part_of(
    service: TransferService,
    routes: RouteService,
    redrives: Redrives,
    further: Mapping[type, Any],
) -> GatewayPart:
    """The part over services.

    Args:
        service: Of transfers.
        routes: Of routes.
        redrives: Carry failed transfers out anew.
        further: Of what operators keep, by class.
    """

    def pages(site: Site) -> Sequence[PageRoute]:
        page = RoutesPage(site, routes, service.reroute)
        records: PartnerRecords = further[PartnerRecords]
        transfer = TransferPage(site, service, redrives, routes, records)
        at = "/transfers/{transfer}"
        group, new = GroupPage(site, ParkedGroups(service)), NewEvent(site, service)
        return (
            ("GET", ADDRESS, new.show),
            ("POST", ADDRESS, new.submit),
            ("GET", f"{GROUPS}/{{group}}", group.show),
            ("POST", f"{GROUPS}/{{group}}", group.answer),
            ("GET", at, transfer.show),
            ("GET", f"{at}/receipt", transfer.receipt),
            ("POST", f"{at}/answer", transfer.answer),
            ("POST", f"{at}/assign", transfer.assign),
            ("POST", f"{at}/reroute", transfer.reroute),
            ("POST", f"{at}/cancel", transfer.cancel),
            ("POST", f"{at}/resend", transfer.resend),
            ("POST", f"{at}/redrive", transfer.redrive),
            ("GET", "/routes", page.show),
            ("POST", "/routes/add", page.add),
            ("POST", "/routes/change", page.change),
            ("POST", "/routes/test", page.test),
            ("POST", "/routes/reroute", page.reroute),
            *operator_routes(site, further),
        )

    return GatewayPart(
        service=service,
        description=_DESCRIPTION,
        further={RouteService: routes, Redrives: redrives, **further},
        routers=(api.router, *v1.ROUTERS),
        runs=ServedTransfers(service),
        pages=PipelinePages(
            routes=pages,
            templates=TEMPLATES,
            names={"transfer_words": labels},
            reading=("/routes/test",),
            menu=(MenuEntry("/runs?pipeline=transfers", N_("Transfers"), key="t"),),
            type_titles=lambda: {
                name: gettext("queue %(name)s", name=name) for name in service.queues
            },
            alike=_alike,
            answer_at="#answer",
            parts=_parts,
            new=(MenuEntry(ADDRESS, N_("New event"), operators=True),),
            related=(
                MenuEntry("/routes", N_("Routes"), operators=True),
                MenuEntry("/partners", N_("Partners"), operators=True),
                MenuEntry("/watches", N_("Watches"), operators=True),
            ),
        ),
    )


async def _parts(visitor: Visitor, found: RunDetails, form: Form | None) -> Sequence[RunPart]:
    """The event that a transfer carries out."""
    given = found.details
    names = {
        "file": N_("File"),
        "source": N_("Source"),
        "event_id": N_("Event"),
        "type": N_("Type"),
        "subject": N_("Subject"),
        "account_id": N_("Account"),
        "queue": N_("Queue"),
        "job": N_("Job in the settings"),
    }
    facts = [Fact(title, given.get(name) or "") for name, title in names.items()]
    if given.get("receipt"):
        at = f"{_address(given['transfer_id'])}#receipt"
        facts.append(Fact(N_("Receipt"), given["receipt"]["sha256"], at))
    return facts_part(N_("Event"), facts)


def _alike(queue: str, question: str) -> Alike:
    """Transfers of a queue that wait for one cause."""
    return Alike(f"{GROUPS}/{cause_key(queue, question)}", failure_fingerprint(question))
