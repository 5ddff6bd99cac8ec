"""What operators keep of transfers over HTTP: routes."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict

from workers.shared.gateway.http.etags import TAGGED, IfMatch, etag, versions_of
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import PageCursor, PageLimit, Who, the
from workers.shared.services.lists import page_of
from workers.shared.services.versions import version_of
from workers.transfers.api import EVENT_BODY, event_body
from workers.transfers.routes import RouteService, read_key
from workers.transfers.service import TransferService
from workflows.shared.contracts import PlainRecord, served
from workflows.transfers.routes import ANY, RouteRemark, RouteRule, RouteVerdict

routes = APIRouter(
    prefix="/api/v1/routes", tags=["routes"], responses=problem_responses(401, 403, 422, 503)
)

Routes = Annotated[RouteService, the(RouteService)]
Transfers = Annotated[TransferService, the(TransferService)]
QueueName = Annotated[str, Path(max_length=63, examples=["jobs"])]
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

    queue: Annotated[str, served("The queue that takes the event", "jobs")]
    rule: Annotated[
        str | None, served("Its name; null: the next free number of the queue", None)
    ] = None


class RouteTie(PlainRecord):
    """Two rules that could take the same event."""

    wins: Annotated[RouteRule, served("The one that gets it", {"queue": "jobs", "rule": "1"})]
    loses: Annotated[RouteRule, served("The other one", {"queue": "jobs", "rule": "2"})]


class RoutePage(PlainRecord):
    """Some rules, by queue and name, and what is wrong with any of them."""

    items: Annotated[Sequence[RouteRule], served("The rules", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null: there is none", None)]
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
