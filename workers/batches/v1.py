"""Batches over HTTP: started, finished, cancelled, tried again, and looked at."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from activities.batches.records import BatchView, DocumentView, ExistingResources, FailedMessage
from workers.batches.labels import shown_outcome
from workers.batches.register import NAME
from workers.batches.service import BatchDetails, BatchOverview
from workers.shared.gateway.access import TheAct
from workers.shared.gateway.http.problems import problem_responses
from workers.shared.gateway.http.requests import PageCursor, PageLimit, Who, cursor_of, the
from workers.shared.services.errands import ErrandService
from workflows.batches.events import (
    BatchEndFinished,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    RedriveRequested,
)
from workflows.batches.loads import DocumentState
from workflows.batches.names import (
    FEWEST_AT_ONCE,
    LARGEST_ID,
    MOST_AT_ONCE,
    BatchKey,
    LoaderStatus,
    Timings,
)
from workflows.batches.runs import BatchStatus, PolledDepth, ResourceRow
from workflows.shared.contracts import PlainRecord, served

_PROBLEMS: Final = problem_responses(401, 403, 422, 503)
_ONE: Final = problem_responses(404)
_CHANGED: Final = problem_responses(404, 409)
batches = APIRouter(prefix="/api/v1/batches", tags=["batches"], responses=_PROBLEMS)
cases = APIRouter(prefix="/api/v1/cases", tags=["batches"], responses=_PROBLEMS)

Batches = Annotated[BatchOverview, the(BatchOverview)]
Errands = Annotated[ErrandService, the(ErrandService)]
Case = Annotated[int, Path(ge=1, le=LARGEST_ID, examples=[7], description="Number of the case")]
Batch = Annotated[int, Path(ge=1, le=LARGEST_ID, examples=[1], description="Number of the batch")]


class BatchHead(BatchView):
    """A batch in a list."""

    id: Annotated[str, served("Its run: /api/v1/runs/{id}", "batch/7/1")]
    case_id: Annotated[int, served("Number of the case", 7)]
    batch_id: Annotated[int, served("Number of the batch in its case", 1)]
    outcome: Annotated[
        str | None, served("How it ended, as LOADER_FINISHED says; null: it has not", "complete")
    ] = None


class BatchPage(PlainRecord):
    """Some batches, the newest change first."""

    items: Annotated[Sequence[BatchHead], served("The batches", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


class RoomWait(PlainRecord):
    """What of the account a batch waits for."""

    resource: Annotated[str, served("What there is too little of", "functions")]
    position: Annotated[int, served("Its place among those that wait, from 1", 1)]


class BatchWait(PlainRecord):
    """A batch that comes first."""

    batch_id: Annotated[int, served("Its number in the case", 1)]
    status: Annotated[LoaderStatus, served("Where it stands", "waiting")]
    purpose: Annotated[str | None, served("What it was asked for; null: not started", "load")]
    since: Annotated[datetime, served("Since when it is so", "2026-01-03T10:00:00Z")]


class BatchDetail(BatchHead):
    """One batch, and where its run stands."""

    phase: Annotated[
        str | None,
        served("What its run does; null: not known", "loading"),
    ] = None
    is_parked: Annotated[bool, served("It waits for a person's answer", False)]
    problem: Annotated[str | None, served("Why nothing is known of its run", None)] = None
    waits_for: Annotated[Sequence[BatchWait], served("Batches of the case that come first", [])]
    waited_for_by: Annotated[Sequence[int], served("Batches of the case that come later", [])]
    room: Annotated[RoomWait | None, served("What of the account it waits for", None)] = None
    redrives: Annotated[int, served("Passes over its dead letters", 0)] = 0
    resources: Annotated[Sequence[ResourceRow], served("What its run built", [])] = ()
    depths: Annotated[Sequence[PolledDepth], served("Its queues at the last looks", [])] = ()
    temporal: Annotated[
        str | None, served("Its page in Temporal's user interface, if its address is set", None)
    ] = None


class DocumentList(PlainRecord):
    """Some documents of a batch, by id."""

    items: Annotated[Sequence[DocumentView], served("The documents", [])]
    next: Annotated[str | None, served("`cursor` of the next page; null on the last page", None)]


class FailedMessages(PlainRecord):
    """Messages of a batch that are not loaded."""

    items: Annotated[
        Sequence[FailedMessage], served("Those in the queue first; bodies are cut", [])
    ]
    more: Annotated[bool, served("There are more than `limit`", False)]


class Accepted(PlainRecord):
    """An event that the case of a batch has accepted; the batch follows it soon after."""

    id: Annotated[str, served("Run of the batch: /api/v1/runs/{id}", "batch/7/1")]
    event: Annotated[str, served("What it is called on the queue of case events", "JOB_STARTED")]
    without_message: Annotated[
        int, served("Failed documents without a message: they have to be sent once more", 0)
    ] = 0


class Concurrency(BaseModel):
    """How many documents of a case are loaded at once."""

    model_config = ConfigDict(extra="forbid")

    most: Annotated[int | None, served("Null: as many as the installation says", 20)] = Field(
        default=None, ge=FEWEST_AT_ONCE, le=MOST_AT_ONCE
    )


class Expected(BaseModel):
    """Batches of a case that will come."""

    model_config = ConfigDict(extra="forbid")

    batches: Annotated[
        list[Annotated[int, Field(ge=1, le=LARGEST_ID)]], served("Their numbers", [1, 2, 3])
    ] = Field(min_length=1, max_length=1_000)


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StartBody(_Request):
    """How a batch is loaded."""

    timings: Annotated[
        dict[str, int],
        served(
            "Seconds, or passes, that take the place of the installation's: "
            + ", ".join(Timings.model_fields),
            {"settle": 5, "poll": 30},
        ),
    ] = Field(default_factory=dict[str, int], max_length=20)


class FinishBody(_Request):
    """What is known of a batch whose documents have all been sent."""

    documents: Annotated[int | None, served("How many there are, to be checked", 1200)] = Field(
        default=None, ge=0, le=LARGEST_ID
    )


class CancelBody(_Request):
    """How much of a batch is stopped, and why."""

    mode: Annotated[CancelMode, served("partial: what was sent is still loaded", "full")] = (
        CancelMode.FULL
    )
    reason: Annotated[str | None, served("Kept with the batch", "the case was closed")] = Field(
        default=None, max_length=500
    )


class RedriveBody(_Request):
    """What of a batch is tried again."""

    with_failed: Annotated[
        bool, served("Messages that were recorded as failed are tried again too", False)
    ] = False


def _head(view: BatchView, status: BatchStatus | None = None) -> dict[str, Any]:
    key = view.key
    return {
        **dict(view),
        "id": key.workflow_id,
        "case_id": key.case_id,
        "batch_id": key.batch_id,
        "outcome": shown_outcome(view, status),
    }


def detail_of(found: BatchDetails) -> BatchDetail:
    """One batch, as it is served."""
    status, lease = found.status, found.lease
    room = None if lease is None else RoomWait(resource=lease.resource, position=lease.position)
    own: dict[str, Any] = (
        {}
        if status is None
        else {
            "phase": status.phase,
            "redrives": status.redrives,
            "resources": status.resources,
            "depths": status.depths,
        }
    )
    return BatchDetail(
        **_head(found.view, status),
        **own,
        is_parked=found.can_answer,
        problem=found.problem,
        waits_for=[BatchWait.model_validate(each) for each in found.waits_for],
        waited_for_by=found.waited_for_by,
        room=room,
        temporal=found.run and found.run.link,
    )


@batches.get("")
async def list_batches(
    service: Batches,
    who: Who,
    case: Annotated[int | None, Query(ge=1, le=LARGEST_ID, description="Of this case")] = None,
    status: LoaderStatus | None = None,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> BatchPage:
    """List batches, the newest change first."""
    before = cursor_of(cursor)
    found = await service.batches(who, case_id=case, status=status, before=before, limit=limit)
    items = [BatchHead(**_head(each)) for each in found.batches]
    return BatchPage(items=items, next=found.next and str(found.next))


@batches.get("/{case}/{batch}", responses=_ONE)
async def get_batch(service: Batches, who: Who, case: Case, batch: Batch) -> BatchDetail:
    """Show one batch, and where its run stands."""
    return detail_of(await service.get(who, BatchKey(case_id=case, batch_id=batch)))


@batches.get("/{case}/{batch}/documents", responses=_ONE)
async def list_batch_documents(
    service: Batches,
    who: Who,
    case: Case,
    batch: Batch,
    state: DocumentState | None = None,
    limit: PageLimit = 50,
    cursor: PageCursor = None,
) -> DocumentList:
    """List the documents of a batch: where each stands, and why those failed that did."""
    key = BatchKey(case_id=case, batch_id=batch)
    found = await service.documents(who, key, state, cursor or "", limit)
    return DocumentList(items=found.documents, next=found.after)


@batches.get("/{case}/{batch}/failed-messages", responses=_ONE)
async def list_failed_messages(
    errands: Errands,
    who: Who,
    case: Case,
    batch: Batch,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> FailedMessages:
    """List messages of a batch that are not loaded; a worker looks into its queues."""
    asked = {"case_id": case, "batch_id": batch, "limit": limit + 1}
    found = await errands.ask(who, NAME, "batch-failed-messages", asked)
    items = [FailedMessage.model_validate(each) for each in found[:limit]]
    return FailedMessages(items=items, more=len(found) > limit)


@batches.get("/{case}/{batch}/resources", responses=_ONE)
async def list_batch_resources(
    errands: Errands, who: Who, case: Case, batch: Batch
) -> ExistingResources:
    """Show what exists of a batch in the cloud now, and whose it is; a worker looks."""
    asked = {"case_id": case, "batch_id": batch}
    return ExistingResources.model_validate(await errands.ask(who, NAME, "batch-resources", asked))


async def _sent(service: BatchOverview, who: Who, event: CaseEvent) -> Accepted:
    await service.send(who, event)
    return Accepted(id=event.key.workflow_id, event=event.event_type)


@batches.post("/{case}/{batch}/start", status_code=202, responses=_CHANGED)
async def start_batch(
    service: Batches,
    who: Who,
    case: Case,
    batch: Batch,
    body: Annotated[StartBody | None, Body()] = None,
) -> Accepted:
    """Start a batch, as JOB_STARTED does."""
    key = BatchKey(case_id=case, batch_id=batch)
    await service.start(who, key, {} if body is None else body.timings)
    return Accepted(id=key.workflow_id, event="JOB_STARTED")


@batches.post("/{case}/{batch}/finish", status_code=202, responses=_CHANGED)
async def finish_batch(
    service: Batches,
    who: Who,
    case: Case,
    batch: Batch,
    body: Annotated[FinishBody | None, Body()] = None,
) -> Accepted:
    """Report that all documents of a batch have been sent, as JOB_FINISHED does."""
    documents = None if body is None else body.documents
    event = JobFinished(case_id=case, batch_id=batch, documents=documents)
    return await _sent(service, who, event)


@batches.post("/{case}/{batch}/end", status_code=202, responses=_CHANGED)
async def end_batch(service: Batches, who: Who, case: Case, batch: Batch) -> Accepted:
    """Report that what follows the loading is done, as BATCH_END_FINISHED does."""
    return await _sent(service, who, BatchEndFinished(case_id=case, batch_id=batch))


@batches.post("/{case}/{batch}/cancel", status_code=202, responses=_CHANGED)
async def cancel_batch(
    service: Batches,
    who: Who,
    case: Case,
    batch: Batch,
    body: Annotated[CancelBody | None, Body()] = None,
) -> Accepted:
    """Cancel a batch, as IMPORT_CANCELLED does; what was built for it is removed."""
    asked = body or CancelBody()
    event = ImportCancelled(
        case_id=case, batch_id=batch, mode=asked.mode, reason=asked.reason, by=who.subject
    )
    return await _sent(service, who, event)


@batches.post("/{case}/{batch}/redrive", status_code=202, responses=_CHANGED)
async def redrive_batch(
    service: Batches,
    who: Who,
    case: Case,
    batch: Batch,
    body: Annotated[RedriveBody | None, Body()] = None,
) -> Accepted:
    """Try the dead letters of a batch once more, also after its end."""
    key = BatchKey(case_id=case, batch_id=batch)
    event = RedriveRequested(**key.model_dump())
    if body is None or not body.with_failed:
        return await _sent(service, who, event)
    lost = await service.retry_failed(who, key)
    return Accepted(id=key.workflow_id, event=event.event_type, without_message=lost)


@cases.get("/{case}/concurrency")
async def get_concurrency(service: Batches, who: Who, case: Case) -> Concurrency:
    """Show how many documents of a case are loaded at once."""
    return Concurrency(most=await service.concurrency(who, case))


@cases.put("/{case}/concurrency")
async def set_concurrency(
    service: Batches, who: Who, act: TheAct, case: Case, body: Concurrency
) -> Concurrency:
    """Set how many documents of a case are loaded at once, for batches that start from now on."""
    act.after = body.model_dump()
    await service.set_concurrency(who, case, body.most)
    return body


@cases.put("/{case}/expected-batches")
async def expect_batches(service: Batches, who: Who, case: Case, body: Expected) -> Expected:
    """Declare which batches of a case will come: none overtakes one with a lower number."""
    return Expected(batches=list(await service.expect(who, case, body.batches)))


ROUTERS: Final = (batches, cases)
