"""What operators keep of transfers over HTTP: routes, partners, watches and expected files."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from workers.shared.gateway.http.etags import TAGGED, IfMatch, etag, versions_of
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import PageCursor, PageLimit, Who, the
from workers.shared.services.errands import ErrandService
from workers.shared.services.errors import Refused
from workers.shared.services.identity import require_operator
from workers.shared.services.lists import page_of
from workers.shared.services.outages import open_outages
from workers.shared.services.versions import version_of
from workers.transfers.api import EVENT_BODY, Rerouting, event_body
from workers.transfers.clocks import ClockService, ClockView, ExpectedView, WatchView
from workers.transfers.partners import PartnerRecords
from workers.transfers.register import NAME
from workers.transfers.routes import RouteService, read_key
from workers.transfers.service import TransferService
from workflows.shared.contracts import PlainRecord, served
from workflows.shared.dependencies import Dependency, outage_id
from workflows.transfers.partners import Partner, fingerprint
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
            "Location": {"schema": {"type": "string"}, "description": "Address of what was made"},
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


class Reroutings(PlainRecord):
    """What became of events whose rules were looked at again."""

    items: Annotated[Sequence[Rerouting], served("The events", [])]


class RouteChange(PlainRecord):
    """A change of a rule."""

    change: Annotated[str, served("`added`, `changed` or `removed`", "added")]
    rule: Annotated[RouteRule, served("As it was then", {"queue": "orders", "rule": "1"})]


class RouteChanges(PlainRecord):
    """Changes of rules, the newest first."""

    items: Annotated[Sequence[RouteChange], served("The changes", [])]
    next: Annotated[None, served("Always null: `limit` says how many are shown", None)] = None


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


@routes.get("/changes")
async def list_route_changes(service: Routes, who: Who, limit: PageLimit = 50) -> RouteChanges:
    """List the newest changes of rules, with who made them."""
    changes = await service.trail(who, limit)
    return RouteChanges(items=[RouteChange(change=change, rule=rule) for rule, change in changes])


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


@routes.post("/{queue}/{rule}/enable", responses=_ONE)
async def enable_route(service: Routes, who: Who, queue: QueueName, rule: RuleName) -> RouteRule:
    """Have a rule take events again."""
    return await service.enable(who, queue, rule, enabled=True)


@routes.post("/{queue}/{rule}/disable", responses=_ONE)
async def disable_route(service: Routes, who: Who, queue: QueueName, rule: RuleName) -> RouteRule:
    """Have a rule take no events; it stays where it is."""
    return await service.enable(who, queue, rule, enabled=False)


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
TheErrands = Annotated[ErrandService, the(ErrandService)]
PartnerName = Annotated[str, Path(max_length=63, examples=["acme"])]


class PartnerHead(PlainRecord):
    """A partner in a list."""

    name: Annotated[str, served("Its name", "acme")]
    kind: Annotated[str, served("How it is reached", "sftp")]
    state: Annotated[str, served("`enabled`, `disabled` or `stopped`", "enabled")]
    stopped: Annotated[str | None, served("Why it may not be used", None)]
    host: Annotated[str | None, served("Host, account URL or endpoint", "sftp.acme.example")]
    where: Annotated[str, served("Host, container and root folder", "sftp.acme.example/in")]
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


class PartnerOrder(BaseModel):
    """A partner to keep."""

    model_config = ConfigDict(extra="forbid")

    record: Annotated[
        dict[str, Any],
        served(
            "Its record, without what docflow sets itself: `revision`, `by`, `changed_at`, "
            "`profile` and `stopped`",
            {"name": "acme", "kind": "folder", "container": "/mnt/acme"},
        ),
    ]


class PartnerKey(PlainRecord):
    """A key of a partner."""

    kind: Annotated[str, served("`host`, or `openpgp`", "host")]
    fingerprint: Annotated[str, served("Its fingerprint", "SHA256:Ab3")]
    algorithm: Annotated[str | None, served("Of a host key", "ssh-ed25519")] = None
    is_ours: Annotated[bool, served("An OpenPGP key of our own", False)] = False
    valid_from: Annotated[date | None, served("Of a host key: its first day", None)] = None
    valid_until: Annotated[date | None, served("Of a host key: its last day", None)] = None
    state: Annotated[str | None, served("Of an OpenPGP key: how long it lasts", None)] = None


class PartnerKeys(PlainRecord):
    """The keys of a partner."""

    items: Annotated[Sequence[PartnerKey], served("The keys", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


class PartnerKeyOrder(BaseModel):
    """An OpenPGP key to add: the partner's with `public`, ours with `private`."""

    model_config = ConfigDict(extra="forbid")

    fingerprint: Annotated[str, served("40 or 64 upper-case hex digits", "AB" * 20)]
    public: Annotated[str | None, served("The armoured public key", None)] = None
    private: Annotated[str | None, served("Where workers find the private key", "env:OUR_KEY")] = (
        None
    )
    passphrase: Annotated[str | None, served("Where workers find its passphrase", None)] = None


class AddedKey(PlainRecord):
    """What a worker saw of a key that was added."""

    state: Annotated[str, served("How long it lasts, in words", "it never expires")]


class ShownHostKey(PlainRecord):
    """The host key that a server shows."""

    fingerprint: Annotated[str, served("As `ssh-keygen -l` shows it", "SHA256:Ab3")]


class HostKeyOrder(BaseModel):
    """A host key to pin."""

    model_config = ConfigDict(extra="forbid")

    fingerprint: Annotated[str, served("Of the key, as the partner stated it", "SHA256:Ab3")]
    retire: Annotated[bool, served("Keys that were pinned before are valid until today", False)] = (
        False
    )


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
    return PartnerList(items=[PartnerHead(**partner_head(each)) for each in items], next=next)


@partners.post("", status_code=201, responses=_MADE)
async def add_partner(
    service: Records, who: Who, body: PartnerOrder, response: Response
) -> PartnerHead:
    """Add a partner; `test` then says whether it works.

    Its record names secrets by where workers find them: `env:NAME`, `file:PATH` or `aws:NAME`. A
    secret itself is refused.
    """
    made = await service.add(who, body.record)
    response.headers["location"] = f"{partners.prefix}/{made.name}"
    return _tagged(made, response)


@partners.put("/{name}", responses={**_CHANGED, **TAGGED})
async def replace_partner(
    service: Records,
    who: Who,
    name: PartnerName,
    body: PartnerOrder,
    response: Response,
    if_match: IfMatch = None,
) -> PartnerHead:
    """Replace the record of a partner.

    It keeps its keys, `write` and `algorithms` where the new record does not hold them.
    """
    changed = await service.replace(who, name, body.record, versions_of(if_match))
    return _tagged(changed, response)


@partners.delete("/{name}", status_code=204, responses=_CHANGED)
async def remove_partner(
    service: Records, who: Who, name: PartnerName, if_match: IfMatch = None
) -> None:
    """Remove the record of a partner; settings that name it fail from then on."""
    await service.remove(who, name, versions_of(if_match))


@partners.post("/{name}/enable", responses=_ONE)
async def enable_partner(service: Records, who: Who, name: PartnerName) -> PartnerHead:
    """Let runs use a partner again, also one that was stopped; those that wait for it continue."""
    return PartnerHead(**partner_head(await service.enable(who, name, enabled=True)))


@partners.post("/{name}/disable", responses=_ONE)
async def disable_partner(service: Records, who: Who, name: PartnerName) -> PartnerHead:
    """Have every run that needs a partner wait."""
    return PartnerHead(**partner_head(await service.enable(who, name, enabled=False)))


@partners.get("/{name}", responses={**_ONE, **TAGGED})
async def get_partner(
    service: Records, transfers: Transfers, who: Who, name: PartnerName, response: Response
) -> PartnerDetail:
    """Show a partner; its record holds references, and no secret."""
    record = await service.get(who, name)
    response.headers["etag"] = etag(version_of(record))
    id = outage_id(Dependency.PARTNER, name)
    outage = next(
        (each for each in await open_outages(transfers.runs) if each.workflow_id == id), None
    )
    return PartnerDetail(
        **partner_head(record),
        record=record,
        outage=None if outage is None else id,
        runs_waiting=0 if outage is None else outage.waiting,
    )


@partners.post("/{name}/test", responses=_ONE)
async def test_partner(
    service: Records,
    errands: TheErrands,
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


@partners.get("/{name}/host-key", responses=_ONE)
async def get_host_key(
    service: Records, errands: TheErrands, who: Who, name: PartnerName
) -> ShownHostKey:
    """Show the host key that the server of a partner shows now; a worker asks it."""
    await service.get(who, name)
    return ShownHostKey(**await errands.ask(who, NAME, "show-host-key", {"name": name}))


@partners.post("/{name}/host-key", responses=_ONE)
async def accept_host_key(
    service: Records, errands: TheErrands, who: Who, name: PartnerName, body: HostKeyOrder
) -> ShownHostKey:
    """Pin the host key that a server shows; runs that wait for the partner continue.

    A worker connects, and refuses another key than the fingerprint says.
    """
    await service.get(who, name)
    given = {"name": name, **body.model_dump()}
    return ShownHostKey(**await errands.ask(who, NAME, "accept-host-key", given))


@partners.get("/{name}/keys", responses=_ONE)
async def list_partner_keys(
    service: Records, errands: TheErrands, who: Who, name: PartnerName
) -> PartnerKeys:
    """List the keys of a partner: of its server, and OpenPGP, which a worker reads."""
    record = await service.get(who, name)
    hosts = [
        PartnerKey(
            kind="host",
            fingerprint=fingerprint(each),
            algorithm=each.key.partition(" ")[0],
            valid_from=each.valid_from,
            valid_until=each.valid_until,
        )
        for each in record.host_keys
    ]
    states: dict[str, str] = {}
    if record.keys:
        states = await errands.ask(who, NAME, "partner-key-states", {"name": name})
    keys = [
        PartnerKey(
            kind="openpgp",
            fingerprint=each.fingerprint,
            is_ours=each.own,
            state=states.get(each.fingerprint),
        )
        for each in record.keys
    ]
    return PartnerKeys(items=[*hosts, *keys])


@partners.post("/{name}/keys", status_code=201, responses=_ONE)
async def add_partner_key(
    service: Records, errands: TheErrands, who: Who, name: PartnerName, body: PartnerKeyOrder
) -> AddedKey:
    """Add an OpenPGP key, in place of one of its fingerprint; a worker reads it first."""
    if (body.public is None) == (body.private is None):
        raise Refused("give `public` for a key of the partner, or `private` for one of ours")
    key = {**body.model_dump(), "own": body.private is not None}
    # What is no reference may be a secret: it gets into no history.
    await service.with_key(who, name, key)
    return AddedKey(**await errands.ask(who, NAME, "add-partner-key", {"name": name, "key": key}))


@partners.delete("/{name}/keys/{fingerprint:path}", status_code=204, responses=_ONE)
async def remove_partner_key(
    service: Records,
    who: Who,
    name: PartnerName,
    fingerprint: Annotated[str, Path(max_length=200, examples=["SHA256:Ab3"])],
) -> None:
    """Remove a host key or an OpenPGP key."""
    await service.forget(who, name, fingerprint)


def _tagged(partner: Partner, response: Response) -> PartnerHead:
    response.headers["etag"] = etag(version_of(partner))
    return PartnerHead(**partner_head(partner))


def partner_head(partner: Partner) -> dict[str, Any]:
    """What lists show of a partner, without any secret."""
    state = "enabled" if partner.enabled else "disabled"
    host = f"{partner.host or ''}:{partner.port}" if partner.port else partner.host
    return {
        **partner.model_dump(include={"name", "stopped", "host", "contact", "changed_at", "by"}),
        "where": "/".join(filter(None, (host, partner.container, partner.root))),
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


class ClockRecord(PlainRecord):
    """What happens by a schedule."""

    schedule_id: Annotated[str, served("Its schedule", "transfer-watch-acme-orders")]
    schedule: Annotated[str, served("`missing`, `paused` or `active`", "active")]
    next_run: Annotated[datetime | None, served("When it is next", "2026-01-03T10:00:00Z")]


class WatchRecord(ClockRecord):
    """A watch, its schedule, and what its last look came to."""

    watch: Annotated[Watch, served("As it is declared", {"name": "acme-orders"})]
    last: Annotated[WatchState | None, served("Its last look; null: none yet", None)]


class WatchedFile(SeenFile):
    """A file that a watch has seen."""

    transfer_id: Annotated[str | None, served("Of its transfer; null: no event was sent", None)]


class WatchDetail(WatchRecord):
    """A watch, and the files that it has seen."""

    files: Annotated[Sequence[WatchedFile], served("The newest 200", [])]


class WatchList(PlainRecord):
    """All watches."""

    items: Annotated[Sequence[WatchRecord], served("The watches", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


class ExpectedRecord(ClockRecord):
    """What is expected, its schedule, and its newest day."""

    expected: Annotated[Expectation, served("As it is declared", {"name": "orders"})]
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
async def get_watch(
    service: Clocks,
    who: Who,
    name: ClockName,
    unsent: Annotated[bool, Query(description="Only files without an event")] = False,
) -> WatchDetail:
    """Show a watch, and the newest files that it has seen."""
    require_operator(who, "watches")
    seen = await service.files(name, 200, unsent=unsent)
    found = next(each for each in await service.watches() if each.watch.name == name)
    files = [
        WatchedFile(**each.model_dump(), transfer_id=service.transfer_of(name, each))
        for each in seen
    ]
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
    return {"watch": view.watch, **_clock(view.schedule), "last": view.state}


def _expected(view: ExpectedView) -> dict[str, Any]:
    return {"expected": view.expectation, **_clock(view.schedule), "day": view.day}


def _clock(view: ClockView) -> dict[str, Any]:
    return {"schedule_id": view.id, "schedule": view.state, "next_run": view.next_run}


ROUTERS: Final = (routes, partners, watches, expected)
