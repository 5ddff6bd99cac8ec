"""Runs of all pipelines over HTTP."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any, Final, Literal, cast

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import FileResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import StreamingResponse
from starlette.routing import Match
from starlette.types import Scope

from adapters.database.access import SqlAudit
from adapters.database.runs import RunsOverview
from adapters.ports.access import Act
from workers import catalogue
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.answers import Download, event_stream
from workers.shared.gateway.http.etags import TAGGED, IfMatch, etag, versions_of
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import Who, cursor_of
from workers.shared.gateway.v1.audit import audit_of
from workers.shared.register import recognise
from workers.shared.services.errors import WrongState
from workers.shared.services.identity import Identity
from workers.shared.services.inbox import gather_bounded
from workers.shared.services.lists import Cursor
from workers.shared.services.run_actions import AnswerRequest
from workers.shared.services.run_service import (
    MOST_ANSWERED,
    Answered,
    RunDetails,
    RunService,
    Span,
)
from workers.shared.services.timeline import TimelineEntry
from workers.shared.services.versions import version_of
from workflows.shared.contracts import PlainRecord, served
from workflows.shared.runs import RunChange, RunFilter, RunRecord

NO_NUL: Final = r"^[^\x00]*$"
"""No table can keep this character."""
MOST: Final = 200
"""Runs of a page."""
_TEXT: Final = (
    "Words, each of which begins a word of the title, the project or the short form, in any order; "
    "or a whole id or key, or the first 8 digits or more of a UUID or digest. Of the first 10,000 "
    "runs that fit otherwise, any part of the title as well"
)
Verb = Literal["retry", "skip", "fail", "cancel"]


class RunPage(PlainRecord):
    """Some runs, the newest change first."""

    items: Annotated[Sequence[RunRecord], served("The runs", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


class Awaited(PlainRecord):
    """What a run needs from a person."""

    what: Annotated[str, served("Its reason, or else the state that waits", "no such sheet")]
    whom: Annotated[str, served("Subject of a person, or `operators` for any", "operators")]
    since: Annotated[datetime | None, served("Since when", "2026-01-03T10:00:00Z")]


class RunDetail(RunRecord):
    """One run."""

    awaits: Annotated[Awaited | None, served("What it needs from a person, if it waits", None)] = (
        None
    )
    answers: Annotated[Sequence[str], served("Answers that it takes now", ["retry", "skip"])]
    has_report: Annotated[bool, served("There is a report of what was rejected", False)]
    temporal: Annotated[
        str | None, served("Its page in Temporal's user interface, if its address is set", None)
    ] = None
    details: Annotated[
        dict[str, Any],
        served(
            "What its pipeline knows of it, as the pipeline's own operation shows it; empty after "
            "an answer, and while no worker says",
            {"problem_count": 2},
        ),
    ]


class Timeline(PlainRecord):
    """What has happened to a run, the first first."""

    items: Annotated[
        Sequence[TimelineEntry], served("Empty: Temporal does not keep the run any more", [])
    ]


class Body(BaseModel):
    """A request; an unknown field is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class AnswerBody(Body):
    """What goes with an answer."""

    reason: str | None = Field(
        default=None, max_length=500, pattern=NO_NUL, examples=["the list was wrong"]
    )
    """Kept with the run."""
    changes: dict[str, Any] = Field(default_factory=dict[str, Any], max_length=32)
    """Of a retry: fields of the message of an import, or parameters of a job, that get another
    value."""
    input: dict[str, Any] | None = None
    """Of a retry: the whole corrected message of an import, parameters of a job, or settings of the
    action of a transfer."""


class Selection(Body):
    """Which runs are answered; all that are given have to fit."""

    pipeline: list[str] | None = Field(default=None, min_length=1, max_length=20)
    kind: str | None = Field(default=None, max_length=100)
    project: str | None = Field(default=None, max_length=200)
    owner: str | None = Field(default=None, max_length=200)
    text: str | None = Field(default=None, max_length=200)
    """As in the list of runs."""
    reason: str | None = Field(default=None, max_length=200)
    """A part of the reason for which they are parked, in upper or lower case."""
    ids: list[str] | None = Field(default=None, max_length=MOST_ANSWERED)
    """Only these, for example those that a dry run has found."""


class AnswerAllBody(Body):
    """The same answer to many runs."""

    answer: Verb
    reason: str | None = Field(default=None, max_length=500, pattern=NO_NUL)
    """Kept with each run."""
    runs: Selection
    dry_run: bool = True
    """Only say which runs are meant."""


class AnsweredAll(PlainRecord):
    """What became of an answer to many runs."""

    dry_run: Annotated[bool, served("Nothing was answered", True)]
    found: Annotated[Sequence[str], served("Runs that take the answer", ["run/P1/T1"])]
    left_out: Annotated[
        Sequence[str],
        served("Runs that do not take it", []),
    ]
    failed: Annotated[dict[str, str], served("Run to the reason why it was not answered", {})]
    more: Annotated[bool, served(f"There are more than {MOST_ANSWERED}: ask again", False)]


def _service_of(request: Request) -> RunService:
    return cast("RunService", request.app.state.runs)


TheService = Annotated[RunService, Depends(_service_of)]


def _wanted(
    pipeline: Annotated[list[str] | None, Query(description="One or several")] = None,
    kind: Annotated[str | None, Query(max_length=100)] = None,
    state: Annotated[str | None, Query(max_length=60)] = None,
    needs_attention: bool | None = None,
    owner: Annotated[str | None, Query(max_length=200)] = None,
    project: Annotated[str | None, Query(max_length=200)] = None,
    reason: Annotated[
        str | None, Query(max_length=200, description="A part of why runs are in their state")
    ] = None,
    text: Annotated[str | None, Query(max_length=200, description=_TEXT)] = None,
    since: Annotated[datetime | None, Query(description="Changed then or later")] = None,
    until: Annotated[datetime | None, Query(description="Changed earlier")] = None,
) -> RunFilter:
    return RunFilter(
        limit=MOST,
        pipelines=pipeline,
        kind=kind,
        state=state,
        needs_attention=needs_attention,
        owner=owner,
        project=project,
        reason=reason,
        text=text,
        since=since,
        until=until,
    )


Wanted = Annotated[RunFilter, Depends(_wanted)]
LastEventId = Annotated[
    str | None, Header(max_length=18, pattern="^[0-9]+$", description="Id of your last event.")
]
_EVENTS: Final[dict[str, Any]] = {
    "response_class": StreamingResponse,
    "responses": {200: {"description": "Events `run`", "content": {"text/event-stream": {}}}},
}


class AboutRun(APIRoute):
    """An address below that of a run; a run whose id ends alike has its own."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """As every route, except for ids of runs."""
        match, found = super().matches(scope)
        if match is Match.NONE:
            return match, found
        id, word = found["path_params"]["id"], self.path.rpartition("/")[2]
        is_run = recognise(catalogue.run_groups(), f"{id}/{word}") is not None
        return (Match.NONE, {}) if is_run else (match, found)


about = APIRouter(route_class=AboutRun)
router = APIRouter(prefix="/api/v1", tags=["runs"], responses=problem_responses(401, 403, 422, 503))
_ONE: Final = problem_responses(404)
_WORKBOOK: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_REPORT: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The spreadsheet",
        "content": {_WORKBOOK: {"schema": {"type": "string", "format": "binary"}}},
    },
    **_ONE,
}
_STREAM_OF_ONE: Final[dict[int | str, dict[str, Any]]] = {
    **_EVENTS["responses"],
    204: {"description": "Nothing more will happen: do not come back"},
    **_ONE,
}


@router.get("/runs")
async def list_runs(
    service: TheService,
    who: Who,
    wanted: Wanted,
    sort: Annotated[
        Literal["-changed_at", "changed_at"], Query(description="The newest, or the oldest first")
    ] = "-changed_at",
    limit: Annotated[int, Query(ge=1, le=MOST)] = 50,
    cursor: Annotated[str | None, Query(max_length=300, description="`next` of a page")] = None,
) -> RunPage:
    """List runs that the caller may see, the newest change first or the oldest."""
    wanted = replace(wanted, oldest_first=sort == "changed_at")
    behind = cursor_of(cursor)
    if behind is not None:
        wanted = replace(wanted, before=behind.at, behind=behind.id)
    found = await service.list(who, replace(wanted, limit=limit + 1))
    items = found[:limit]
    last = items[-1] if len(found) > limit else None
    return RunPage(
        items=items, next=None if last is None else str(Cursor(last.changed_at, last.id))
    )


@router.post("/runs/answers")
async def answer_runs(
    service: TheService,
    who: Who,
    act: TheAct,
    audit: Annotated[SqlAudit, Depends(audit_of)],
    body: AnswerAllBody,
) -> AnsweredAll:
    """Give the same answer to all runs that need attention and fit.

    With `dry_run`, which is the default, nothing is answered. The audit has an entry of the request
    and one of each run.
    """
    chosen = body.runs
    wanted = RunFilter(
        limit=MOST_ANSWERED,
        pipelines=chosen.pipeline,
        kind=chosen.kind,
        project=chosen.project,
        owner=chosen.owner,
        text=chosen.text,
        reason=chosen.reason,
        ids=chosen.ids,
    )
    request = AnswerRequest(body.answer, reason=body.reason)
    done = await service.answer_all(who, wanted, request, dry_run=body.dry_run)
    answered = AnsweredAll(
        dry_run=body.dry_run,
        found=[each.id for each in done.found],
        left_out=done.left_out,
        failed=dict(done.failed),
        more=done.more,
    )
    act.after = {"answer": body.answer, **answered.model_dump()}
    if not body.dry_run:
        await note_answers(audit, act, body.answer, done)
    return answered


async def note_answers(audit: SqlAudit, act: Act, answer: str, done: Answered) -> None:
    """Add an entry about each of many runs: people look for what was done to it by its id."""

    async def note(run: RunRecord) -> None:
        refused = done.failed.get(run.id)
        after = {"answer": answer, "refused": refused}
        one = replace(act, id=None, object=run.id, before=_standing(run), after=after)
        await audit.begin(one, 200 if refused is None else WrongState.status)

    await gather_bounded(done.found, note)


def note_answer(act: Act, run: RunRecord, answer: str, changes: Mapping[str, Any]) -> None:
    """Let the entry of an answer say to which run it is, and where that stood."""
    act.object, act.before = run.id, _standing(run)
    if run.organisation_id is not None:
        act.organisation_id = run.organisation_id
    # A corrected input may hold secrets.
    act.after = {"answer": answer, "changes": changes}


@router.post("/runs/{id:path}/{answer}", responses={**problem_responses(404, 409, 412), **TAGGED})
async def answer_run(
    service: TheService,
    who: Who,
    act: TheAct,
    id: str,
    answer: Verb,
    response: Response,
    body: AnswerBody | None = None,
    if_match: IfMatch = None,
) -> RunDetail:
    """Answer a run: `retry`, `skip`, `fail` or `cancel`; the run afterwards.

    The answer is applied when this returns. The run's own row may follow a moment later.
    """
    given = body or AnswerBody()
    note_answer(act, await service.row(who, id), answer, given.changes)
    correction = None if given.input is None else json.dumps(given.input).encode()
    request = AnswerRequest(
        answer, reason=given.reason, correction=correction, changes=given.changes
    )
    return _detail(await service.answer(who, id, request, versions_of(if_match)), response)


@about.get("/runs/{id:path}/timeline", responses=_ONE)
async def get_run_timeline(service: TheService, who: Who, id: str) -> Timeline:
    """Say what has happened to a run, as long as Temporal keeps it."""
    return Timeline(items=await service.timeline(who, id))


@about.get("/runs/{id:path}/report", response_class=FileResponse, responses=_REPORT)
async def get_run_report(service: TheService, who: Who, id: str) -> Response:
    """Fetch the spreadsheet of what was rejected."""
    return await download_report(service, who, id)


async def download_report(service: RunService, who: Identity, id: str) -> Response:
    """The spreadsheet of what was rejected, as a download.

    Raises:
        NotFound: There is no such run that the person may see, or it has no report.
    """
    with NamedTemporaryFile(dir=service.scratch, prefix="report-", delete=False) as file:
        path = Path(file.name)
    try:
        async with await service.report(who, id) as report:
            await report.download(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Download(path, filename=Path(report.filename).name)


@about.get("/runs/{id:path}/events", response_class=StreamingResponse, responses=_STREAM_OF_ONE)
async def watch_run(
    service: TheService, who: Who, id: str, request: Request, last_event_id: LastEventId = None
) -> Response:
    """Send the run as it is, and at each change until it has ended, as server-sent events.

    If you send `Last-Event-ID`, the stream begins behind that event. 204: nothing more will come.
    """
    seen, stopping = _number(last_event_id), _stopping(request)
    changes = await service.changes_of_one(who, id, seen, stopping)
    return Response(status_code=204) if changes is None else _stream(request, who, changes)


@router.get("/events", **_EVENTS)
async def watch_runs(
    service: TheService,
    who: Who,
    wanted: Wanted,
    request: Request,
    last_event_id: LastEventId = None,
) -> Response:
    """Send runs that the caller may see whenever they change, as server-sent events.

    The stream begins now. If you send `Last-Event-ID`, it begins behind that event: none is lost,
    and those of the same moment may come again.
    """
    changes = await service.changes(who, wanted, _number(last_event_id), _stopping(request))
    return _stream(request, who, changes)


@router.get("/overview")
async def get_overview(
    service: TheService,
    who: Who,
    span: Annotated[Span, Query(description="How much of the past")] = Span.DAY,
) -> RunsOverview:
    """Count the runs that have ended, by steps of time, and those that are open or wait."""
    return await service.overview(who, span)


router.include_router(about)


@router.get("/runs/{id:path}", responses={**_ONE, **TAGGED})
async def get_run(service: TheService, who: Who, id: str, response: Response) -> RunDetail:
    """Show one run, by its workflow id or a short form: key, task id, first digits of an id.

    A short form that may mean several runs is refused with their ids.
    """
    return _detail(await service.get(who, id), response)


def _standing(run: RunRecord) -> Mapping[str, Any]:
    """Where a run stands, for the audit."""
    return run.model_dump(mode="json", include={"state", "own_state", "reason"})


def _detail(found: RunDetails, response: Response) -> RunDetail:
    response.headers["etag"] = etag(version_of(found.run))
    view, awaits = found.view, None
    if view is not None and view.awaits is not None and found.run.needs_attention:
        what = found.run.reason or found.run.own_state.lower().replace("_", " ")
        awaits = Awaited(what=what, whom=view.awaits, since=view.since)
    return RunDetail(
        **dict(found.run),
        awaits=awaits,
        answers=found.answers,
        has_report=found.has_report,
        temporal=view.link if view else None,
        details=dict(found.details),
    )


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _stopping(request: Request) -> Callable[[], bool]:
    return cast("Callable[[], bool]", request.app.state.stopping)


@dataclass(frozen=True)
class _Event:
    run: RunRecord
    id: int
    """What a reader continues behind: who has not read all changes of a transaction reads all of
    them again."""


async def _events(
    changes: AsyncGenerator[Sequence[RunChange] | None],
) -> AsyncGenerator[_Event | None]:
    async for each in changes:
        if each is None:
            yield None
            continue
        for number, change in enumerate(each, start=1):
            is_last = number == len(each) or each[number].revision > change.revision
            yield _Event(change.run, change.revision if is_last else change.revision - 1)


def _stream(
    request: Request, who: Identity, changes: AsyncGenerator[Sequence[RunChange] | None]
) -> Response:
    return event_stream(
        request,
        who,
        _events(changes),
        event="run",
        id=lambda each: str(each.id),
        render=lambda each: each.run.model_dump_json(),
    )
