"""Webhooks about runs over HTTP."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from adapters.ports.webhooks import RunWebhook, SentMessage
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import PageLimit, Who, the
from workers.shared.services.webhooks import WebhookService
from workflows.shared.contracts import PlainRecord, served
from workflows.shared.run_webhooks import TOLD, RunEvent
from workflows.shared.webhook_addresses import URL_CHARACTERS

_LARGEST_ID: Final = 2**53
_ONE: Final = problem_responses(404)
_SENDING: Final = problem_responses(404, 409)
_MADE: Final[dict[int | str, dict[str, Any]]] = {
    201: {
        "headers": {
            "Location": {"schema": {"type": "string"}, "description": "Address of the webhook"}
        }
    },
}
Event = Literal[RunEvent.ENDED, RunEvent.NEEDS_ATTENTION, RunEvent.ROWS_REJECTED]
Url = Annotated[
    str,
    Field(
        min_length=1,
        max_length=URL_CHARACTERS,
        description="Where messages go: an address of the public internet that begins with https",
        examples=["https://erp.example.com/docflow"],
    ),
]
Events = Annotated[
    tuple[Event, ...],
    Field(min_length=1, max_length=3, description="What it is told", examples=[["run.ended"]]),
]
Pipelines = Annotated[
    tuple[Annotated[str, Field(max_length=64)], ...],
    Field(max_length=20, description="Of which pipelines; none: of all", examples=[[]]),
]


class NewWebhook(BaseModel):
    """A webhook to add."""

    model_config = ConfigDict(extra="forbid")

    url: Url
    organisation_id: int | None = Field(
        default=None,
        ge=1,
        le=_LARGEST_ID,
        description="Whose runs; null: all runs of the installation",
        examples=[3],
    )
    events: Events = TOLD
    pipelines: Pipelines = ()


class WebhookChanges(BaseModel):
    """What changes of a webhook; what is not given stays."""

    model_config = ConfigDict(extra="forbid")

    url: Url | None = None
    events: Events | None = None
    pipelines: Pipelines | None = None
    enabled: bool | None = Field(
        default=None, description="Whether messages are sent; else they wait", examples=[False]
    )


class MadeWebhook(RunWebhook):
    """A webhook with a new secret."""

    secret: Annotated[str, served("Signs each message; it is shown once", "whsec_MfKQ9r8GKY...")]


class WebhookList(PlainRecord):
    """Webhooks, the newest first."""

    items: Annotated[Sequence[RunWebhook], served("The webhooks", [])]
    next: Annotated[None, served("Always null: there are few", None)] = None


class MessagePage(PlainRecord):
    """Some messages to a receiver, the newest first."""

    items: Annotated[Sequence[SentMessage], served("The messages", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


TheService = Annotated[WebhookService, the(WebhookService)]
Id = Annotated[int, Path(ge=1, le=_LARGEST_ID, description="Number of the webhook", examples=[7])]
Number = Annotated[
    int, Path(ge=1, le=_LARGEST_ID, description="Number of the message", examples=[12])
]

router = APIRouter(
    prefix="/api/v1/webhooks", tags=["webhooks"], responses=problem_responses(401, 403, 422, 503)
)


@router.get("")
async def list_webhooks(service: TheService, who: Who) -> WebhookList:
    """List the webhooks, the newest first."""
    return WebhookList(items=await service.list(who))


@router.post("", status_code=201, responses=_MADE)
async def add_webhook(
    service: TheService, who: Who, act: TheAct, body: NewWebhook, response: Response
) -> MadeWebhook:
    """Add a receiver; its secret is in this answer alone."""
    made, secret = await service.add(
        who, body.organisation_id, body.url, body.events, body.pipelines
    )
    act.organisation_id, act.after = made.organisation_id, made.model_dump(mode="json")
    response.headers["location"] = f"{router.prefix}/{made.id}"
    return MadeWebhook(**dict(made), secret=secret)


@router.get("/{id}", responses=_ONE)
async def get_webhook(service: TheService, who: Who, id: Id) -> RunWebhook:
    """Show one webhook, without its secret."""
    return await service.get(who, id)


@router.patch("/{id}", responses=_ONE)
async def change_webhook(
    service: TheService, who: Who, act: TheAct, id: Id, body: WebhookChanges
) -> RunWebhook:
    """Change a webhook; what happens while it is disabled is told when it is enabled again."""
    before = await service.get(who, id)
    after = await service.change(who, id, body.url, body.events, body.pipelines, body.enabled)
    act.organisation_id = after.organisation_id
    act.before, act.after = before.model_dump(mode="json"), after.model_dump(mode="json")
    return after


@router.delete("/{id}", status_code=204, responses=_ONE)
async def remove_webhook(service: TheService, who: Who, act: TheAct, id: Id) -> None:
    """Remove a webhook with its messages."""
    before = await service.remove(who, id)
    act.organisation_id, act.before = before.organisation_id, before.model_dump(mode="json")


@router.post("/{id}/rotate", responses=_ONE)
async def rotate_webhook_secret(service: TheService, who: Who, act: TheAct, id: Id) -> MadeWebhook:
    """Give a webhook another secret; messages are signed with the former one as well for a day."""
    changed, secret = await service.rotate(who, id)
    act.organisation_id = changed.organisation_id
    return MadeWebhook(**dict(changed), secret=secret)


@router.post("/{id}/test", responses=_SENDING)
async def test_webhook(service: TheService, who: Who, id: Id) -> SentMessage:
    """Send a message that is about no run; look at it again to see what became of it."""
    return await service.test(who, id)


@router.get("/{id}/messages", responses=_ONE)
async def list_webhook_messages(
    service: TheService,
    who: Who,
    id: Id,
    limit: PageLimit = 50,
    cursor: Annotated[
        int | None, Query(ge=1, le=_LARGEST_ID, description="`next` of a page")
    ] = None,
) -> MessagePage:
    """List what a receiver was sent, the newest first."""
    found = await service.messages(who, id, cursor, limit + 1)
    items = found[:limit]
    return MessagePage(items=items, next=str(items[-1].id) if len(found) > limit else None)


@router.get("/{id}/messages/{number}", responses=_ONE)
async def get_webhook_message(service: TheService, who: Who, id: Id, number: Number) -> SentMessage:
    """Show what became of one message."""
    return await service.message(who, id, number)


@router.post("/{id}/messages/{number}/resend", responses=_SENDING)
async def resend_webhook_message(
    service: TheService, who: Who, id: Id, number: Number
) -> SentMessage:
    """Send a message again, under its id, so that the receiver knows it."""
    return await service.resend(who, id, number)
