"""The inbox of all pipelines over HTTP."""

from datetime import datetime
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request, Response

from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import Who
from workers.shared.services.bodies import Body
from workers.shared.services.inbox import Inbox

router = APIRouter(prefix="/api", responses=problem_responses(401, 403, 422, 503))


class InboxView(Body):
    """A run that waits for a person."""

    workflow_id: str
    pipeline: str
    document_type: str
    state: str
    waiting_since: datetime
    waiting_for: str | None
    organisation_id: int | None
    project_id: str | None
    filename: str | None
    identifier: str | None
    """Of a spreadsheet import."""
    reason: str | None
    """Why it waits."""


def _inbox_of(request: Request) -> Inbox:
    return cast("Inbox", request.app.state.inbox)


@router.get("/inbox", tags=["inbox"])
async def read_inbox(
    inbox: Annotated[Inbox, Depends(_inbox_of)],
    who: Who,
    response: Response,
    mine: Annotated[bool, Query(description="Only those that the caller has started")] = False,
) -> list[InboxView]:
    """Runs that wait for a person, the longest wait first; at most 1,000."""
    entries = await inbox.read(who, mine=mine)
    response.headers["x-total-count"] = str(len(entries))
    return [InboxView.model_validate(entry, from_attributes=True) for entry in entries]
