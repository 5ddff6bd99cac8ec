"""What operators keep of transfers over HTTP: routes, partners, watches and expected files."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from workers.shared.gateway.http.etags import TAGGED, IfMatch, etag, versions_of
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import PageCursor, PageLimit, Who, the
from workers.shared.services.errands import ErrandService
from workers.shared.services.identity import require_operator
from workers.shared.services.lists import page_of
from workers.shared.services.outages import open_outages
from workers.shared.services.versions import version_of
from workers.transfers.api import EVENT_BODY, event_body
from workers.transfers.partners import PartnerRecords
from workers.transfers.register import NAME
from workers.transfers.routes import RouteService, read_key
from workers.transfers.service import TransferService
from workers.transfers.watch_commands import ClockService, ExpectedView, WatchView
from workflows.shared.contracts import PlainRecord, served
from workflows.shared.dependencies import Dependency, outage_id
from workflows.transfers.partners import Partner
from workflows.transfers.routes import ANY, RouteRemark, RouteRule, RouteVerdict
from workflows.transfers.watches import Expectation, ExpectedDay, SeenFile, Watch, WatchState

routes = APIRouter(
    prefix="/api/v1/routes", tags=["routes"], responses=problem_responses(401, 403, 422, 503)
)

Routes = Annotated[RouteService, the(RouteService)]
Transfers = Annotated[TransferService, the(TransferService)]
QueueName = Annotated[str, Path(max_length=63, examples=["orders"])]
RuleName = Annotated[str, Path(max_length=100, examples=["1"])]
_ONE: Final = problem_responses(404)
_CHANGED: Final = problem_responses(404, 412)
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "headers": {
            "Location": {"schema": {"type": "string"}, "description": "Address of the rule"},
            "ETag": {"schema": {"type": "string"}, "description": "For If-Match"},
        }
    }
}


class RouteMatch(BaseModel):
    """What a rule matches, and whether it does; a field that is left out gets its default."""

    model_config = ConfigDict(extra="forbid")

    account_id: Annotated[
        str, served("`accountId` of the event; `*` stands for any characters", "TMS001")
    ] = ANY
    source: Annotated[str, served("Source of the event", "TMS.*")] = ANY
    type: Annotated[str, served("Type of the event", "Succeeded")] = ANY
    subject: Annotated[str, served("Subject of the event", "File Upload")] = ANY
    priority: Annotated[int, served("The highest wins; -1000 to 1000", 0)] = 0
    enabled: Annotated[bool, served("It takes events", True)] = True


class NewRoute(RouteMatch):
    """A rule to add."""

    queue: Annotated[str, served("The queue that takes the event", "orders")]
    rule: Annotated[
        str | None, served("Its name; null: the next free number of the queue", None)
    ] = None


class RouteTie(PlainRecord):
    """Two rules that could take the same event."""

    wins: Annotated[RouteRule, served("The one that gets it", {"queue": "orders", "rule": "1"})]
    loses: Annotated[RouteRule, served("The other one", {"queue": "orders", "rule": "2"})]


class RoutePage(PlainRecord):
    """Some rules, by queue and name, and what is wrong with any of them."""

    items: Annotated[Sequence[RouteRule], served("The rules", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]
    unusable: Annotated[
        Sequence[RouteRemark], served("Rows of others of which no rule can be made", [])
    ]
    ties: Annotated[Sequence[RouteTie], served("The first hundred ties of all rules", [])]


class Rerouting(PlainRecord):
    """What became of one event whose rules were looked at again."""

    transfer_id: Annotated[str, served("Id of the transfer", "5f" * 32)]
    problem: Annotated[str | None, served("Why it was not done; null: it was", None)]


class Reroutings(PlainRecord):
    """What became of events whose rules were looked at again."""

    items: Annotated[Sequence[Rerouting], served("The events", [])]


@routes.get("")
async def list_routes(
    service: Routes,
    who: Who,
    queue: Annotated[str | None, Query(max_length=63)] = None,
    text: Annotated[str, Query(max_length=200, description="In a name or an attribute")] = "",
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> RoutePage:
    """List rules by queue and name."""
    found = await service.listing(who, queue, text)
    items, next = page_of(found.rules, lambda each: (each.queue, each.rule), limit, cursor)
    ties = [RouteTie(wins=one, loses=other) for one, other in found.ties]
    return RoutePage(items=items, next=next, unusable=found.unusable, ties=ties)


@routes.post("", status_code=201, responses=_MADE)
async def add_route(service: Routes, who: Who, body: NewRoute, response: Response) -> RouteRule:
    """Add a rule; one that could win as well as another is refused."""
    made = await service.add(who, body.model_dump(exclude_none=True))
    response.headers["location"] = f"{routes.prefix}/{made.queue}/{made.rule}"
    response.headers["etag"] = etag(version_of(made))
    return made


@routes.get("/{queue}/{rule}", responses={**_ONE, **TAGGED})
async def get_route(
    service: Routes, who: Who, queue: QueueName, rule: RuleName, response: Response
) -> RouteRule:
    """Show one rule."""
    found = await service.get(who, queue, rule)
    response.headers["etag"] = etag(version_of(found))
    return found


@routes.put("/{queue}/{rule}", responses={**_CHANGED, **TAGGED})
async def change_route(
    service: Routes,
    who: Who,
    queue: QueueName,
    rule: RuleName,
    body: RouteMatch,
    response: Response,
    if_match: IfMatch = None,
) -> RouteRule:
    """Replace what a rule matches, or enable or disable it."""
    versions = versions_of(if_match)
    changed = await service.change(who, queue, rule, body.model_dump(), versions)
    response.headers["etag"] = etag(version_of(changed))
    return changed


@routes.delete("/{queue}/{rule}", status_code=204, responses=_CHANGED)
async def remove_route(
    service: Routes, who: Who, queue: QueueName, rule: RuleName, if_match: IfMatch = None
) -> None:
    """Remove a rule; what it was stays in the trail."""
    await service.remove(who, queue, rule, versions_of(if_match))


@routes.post("/test", openapi_extra=EVENT_BODY, responses=problem_responses(413))
async def test_routes(service: Routes, who: Who, request: Request) -> RouteVerdict:
    """Show which rule takes an event, and why the nearest others do not; nothing is sent."""
    return await service.test(who, read_key(await event_body(request)))


@routes.post("/reroute")
async def reroute_events(service: Transfers, who: Who) -> Reroutings:
    """Look at the rules again for every event that none has matched."""
    done = await service.reroute(who)
    return Reroutings(items=[Rerouting.model_validate(each) for each in done])


partners = APIRouter(
    prefix="/api/v1/partners", tags=["partners"], responses=problem_responses(401, 403, 422, 503)
)
Records = Annotated[PartnerRecords, the(PartnerRecords)]
PartnerName = Annotated[str, Path(max_length=63, examples=["acme"])]


class PartnerHead(PlainRecord):
    """A partner in a list."""

    name: Annotated[str, served("Its name", "acme")]
    kind: Annotated[str, served("How it is reached", "sftp")]
    state: Annotated[str, served("`enabled`, `disabled` or `stopped`", "enabled")]
    stopped: Annotated[str | None, served("Why it may not be used", None)]
    host: Annotated[str | None, served("Host, account URL or endpoint", "sftp.acme.example")]
    contact: Annotated[str | None, served("Whom to ask", "ann@acme.example")]
    changed_at: Annotated[datetime | None, served("Last change", "2026-01-03T10:00:00Z")]
    by: Annotated[str | None, served("Who changed it last", "ann")]


class PartnerDetail(PartnerHead):
    """A partner."""

    record: Annotated[Partner, served("Its record: references, and no secret", {"name": "acme"})]
    outage: Annotated[
        str | None, served("Workflow id of the outage while it does not answer", None)
    ]
    runs_waiting: Annotated[int, served("Open runs that wait for its end", 0)]


class PartnerList(PlainRecord):
    """All partners, by name."""

    items: Annotated[Sequence[PartnerHead], served("The partners", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


class PartnerTest(PlainRecord):
    """What a test of a partner saw."""

    works: Annotated[bool, served("Transfers can use it", True)]
    sentences: Annotated[Sequence[str], served("What was seen, in words", ["it answers"])]
    shown: Annotated[str | None, served("Fingerprint of a host key that is not pinned", None)]


class PartnerTestOrder(BaseModel):
    """How a partner is tested."""

    model_config = ConfigDict(extra="forbid")

    folder: Annotated[
        str, served("Where small files are written and removed; empty: as recorded", "inbox")
    ] = Field(default="", max_length=1_024)


@partners.get("")
async def list_partners(
    service: Records, who: Who, limit: PageLimit = 50, cursor: PageCursor = None
) -> PartnerList:
    """List partners by name."""
    items, next = page_of(await service.all(who), lambda each: (each.name,), limit, cursor)
    return PartnerList(items=[PartnerHead(**_head(each)) for each in items], next=next)


@partners.get("/{name}", responses=_ONE)
async def get_partner(
    service: Records, transfers: Transfers, who: Who, name: PartnerName
) -> PartnerDetail:
    """Show a partner; its record holds references, and no secret."""
    record = await service.get(who, name)
    id = outage_id(Dependency.PARTNER, name)
    outage = next(
        (each for each in await open_outages(transfers.runs) if each.workflow_id == id), None
    )
    return PartnerDetail(
        **_head(record),
        record=record,
        outage=None if outage is None else id,
        runs_waiting=0 if outage is None else outage.waiting,
    )


@partners.post("/{name}/test", responses=_ONE)
async def test_partner(
    service: Records,
    errands: Annotated[ErrandService, the(ErrandService)],
    who: Who,
    name: PartnerName,
    body: PartnerTestOrder | None = None,
) -> PartnerTest:
    """Connect to a partner and show what it can do; no file of the partner is moved.

    A worker of transfers does it, which has the keys of partners.
    """
    await service.get(who, name)
    given = {"name": name, "folder": "" if body is None else body.folder}
    return PartnerTest(**await errands.ask(who, NAME, "test-partner", given))


def _head(partner: Partner) -> dict[str, Any]:
    state = "enabled" if partner.enabled else "disabled"
    return {
        **partner.model_dump(include={"name", "stopped", "host", "contact", "changed_at", "by"}),
        "kind": partner.kind.value,
        "state": state if partner.stopped is None else "stopped",
    }


watches = APIRouter(
    prefix="/api/v1/watches", tags=["watches"], responses=problem_responses(401, 403, 422, 503)
)
expected = APIRouter(
    prefix="/api/v1/expected-files",
    tags=["expected files"],
    responses=problem_responses(401, 403, 422, 503),
)
Clocks = Annotated[ClockService, the(ClockService)]
ClockName = Annotated[str, Path(max_length=63, examples=["acme-orders"])]


class WatchRecord(PlainRecord):
    """A watch, its schedule, and what its last look came to."""

    watch: Annotated[Watch, served("As it is declared", {"name": "acme-orders"})]
    schedule: Annotated[str, served("`missing`, `paused` or `active`", "active")]
    next_run: Annotated[datetime | None, served("Next look", "2026-01-03T10:00:00Z")]
    last: Annotated[WatchState | None, served("Its last look; null: none yet", None)]


class WatchDetail(WatchRecord):
    """A watch, and the files that it has seen."""

    files: Annotated[Sequence[SeenFile], served("The newest 200", [])]


class WatchList(PlainRecord):
    """All watches."""

    items: Annotated[Sequence[WatchRecord], served("The watches", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


class ExpectedRecord(PlainRecord):
    """What is expected, its schedule, and its newest day."""

    expected: Annotated[Expectation, served("As it is declared", {"name": "orders"})]
    schedule: Annotated[str, served("`missing`, `paused` or `active`", "active")]
    day: Annotated[ExpectedDay | None, served("Its newest day; null: not checked yet", None)]


class ExpectedDetail(ExpectedRecord):
    """What is expected, and its days."""

    days: Annotated[Sequence[ExpectedDay], served("The newest 31", [])]


class ExpectedList(PlainRecord):
    """All that is expected."""

    items: Annotated[Sequence[ExpectedRecord], served("What is expected", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


@watches.get("")
async def list_watches(service: Clocks, who: Who) -> WatchList:
    """List watches, with what their last looks came to."""
    require_operator(who, "watches")
    return WatchList(items=[WatchRecord(**_watch(each)) for each in await service.watches()])


@watches.get("/{name}", responses=_ONE)
async def get_watch(service: Clocks, who: Who, name: ClockName) -> WatchDetail:
    """Show a watch, and the newest files that it has seen."""
    require_operator(who, "watches")
    files = await service.files(name, 200, unsent=False)
    found = next(each for each in await service.watches() if each.watch.name == name)
    return WatchDetail(**_watch(found), files=files)


@expected.get("")
async def list_expected_files(service: Clocks, who: Who) -> ExpectedList:
    """List what is expected, with what has come for the newest day."""
    require_operator(who, "expected files")
    found = await service.expected()
    return ExpectedList(items=[ExpectedRecord(**_expected(each)) for each in found])


@expected.get("/{name}", responses=_ONE)
async def get_expected_files(service: Clocks, who: Who, name: ClockName) -> ExpectedDetail:
    """Show what is expected, and what came for each day."""
    require_operator(who, "expected files")
    days = await service.days(name, 31)
    found = next(each for each in await service.expected() if each.expectation.name == name)
    return ExpectedDetail(**_expected(found), days=days)


def _watch(view: WatchView) -> dict[str, Any]:
    clock = view.schedule
    return {
        "watch": view.watch,
        "schedule": clock.state,
        "next_run": clock.next_run,
        "last": view.state,
    }


def _expected(view: ExpectedView) -> dict[str, Any]:
    return {"expected": view.expectation, "schedule": view.schedule.state, "day": view.day}


ROUTERS: Final = (routes, partners, watches, expected)
