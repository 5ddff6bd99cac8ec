"""Runs of all pipelines over HTTP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query, Request

from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import Who, cursor_of
from workers.shared.services.lists import Cursor
from workers.shared.services.run_service import RunService
from workflows.shared.contracts import PlainRecord, served
from workflows.shared.runs import RunFilter, RunRecord

MOST = 200
"""Runs of a page."""


class RunPage(PlainRecord):
    """Some runs, the newest change first."""

    items: Annotated[Sequence[RunRecord], served("The runs", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null: there is none", None)]


class RunDetail(RunRecord):
    """One run."""

    answers: Annotated[Sequence[str], served("Answers that it offers while it is open", ["retry"])]


def _service_of(request: Request) -> RunService:
    return cast("RunService", request.app.state.runs)


TheService = Annotated[RunService, Depends(_service_of)]

router = APIRouter(prefix="/api/v1", tags=["runs"], responses=problem_responses(401, 403, 422, 503))


@router.get("/runs")
async def list_runs(
    service: TheService,
    who: Who,
    pipeline: Annotated[list[str] | None, Query(description="One or several")] = None,
    kind: Annotated[str | None, Query(max_length=100)] = None,
    state: Annotated[str | None, Query(max_length=60)] = None,
    needs_attention: bool | None = None,
    owner: Annotated[str | None, Query(max_length=200)] = None,
    project: Annotated[str | None, Query(max_length=200)] = None,
    text: Annotated[str | None, Query(max_length=200, description="In the title, or an id")] = None,
    since: Annotated[datetime | None, Query(description="Changed then or later")] = None,
    limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
    cursor: Annotated[str | None, Query(max_length=300, description="`next` of a page")] = None,
) -> RunPage:
    """Runs that the caller may see, the newest change first."""
    behind = cursor_of(cursor)
    wanted = RunFilter(
        limit=limit + 1,
        pipelines=pipeline,
        kind=kind,
        state=state,
        needs_attention=needs_attention,
        owner=owner,
        project=project,
        text=text,
        since=since,
        before=None if behind is None else behind.at,
        behind=None if behind is None else behind.id,
    )
    found = await service.list(who, wanted)
    items = found[:limit]
    last = items[-1] if len(found) > limit else None
    return RunPage(
        items=items, next=None if last is None else str(Cursor(last.changed_at, last.id))
    )


@router.get("/runs/{id:path}", responses=problem_responses(404))
async def get_run(service: TheService, who: Who, id: str) -> RunDetail:
    """One run, by its workflow id."""
    run = await service.get(who, id)
    return RunDetail(**dict(run), answers=service.answers(run))
