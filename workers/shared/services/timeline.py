"""What has happened to a run, in words, as its history in Temporal tells it."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, cast

from google.protobuf.timestamp_pb2 import Timestamp
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.api.enums.v1 import EventType as Event
from temporalio.api.failure.v1 import Failure
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from workers.shared.services.bodies import printable
from workflows.shared import attributes
from workflows.shared.contracts import PlainRecord, served

MOST_EVENTS: Final = 5_000
"""Events of a history that are read."""
_LONGEST: Final = 500
"""Characters of a text."""


class TimelineEntry(PlainRecord):
    """Something that happened to a run."""

    at: Annotated[datetime, served("When", "2026-01-03T10:00:00Z")]
    event: Annotated[
        str,
        served("`started`, `state`, `step`, `answer`, `message`, `child`, `ended`", "step"),
    ]
    text: Annotated[str, served("What, in words", "read list.xlsx")]
    tries: Annotated[int | None, served("How many tries a step took", 2)] = None
    seconds: Annotated[float | None, served("From its first try to its end", 1.2)] = None
    problem: Annotated[str | None, served("Why it failed", None)] = None
    by: Annotated[str | None, served("Who answered", "ann")] = None
    reason: Annotated[str | None, served("The reason that the person gave", None)] = None


async def timeline_of(client: Client, workflow_id: str) -> Sequence[TimelineEntry]:
    """What has happened to the newest run of a workflow id, the first first.

    Raises:
        RPCError: Temporal does not answer.
    """
    reader = _Reader(client)
    handle = client.get_workflow_handle(workflow_id)
    read = 0
    try:
        async for event in handle.fetch_history_events():
            await reader.read(event)
            read += 1
            if read == MOST_EVENTS:
                reader.cut(event)
                break
        pending = (await handle.describe()).raw_description.pending_activities
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return reader.entries
        raise
    for each in pending:
        text = f"{_words(each.activity_type.name)} has not ended"
        failed = each.HasField("last_failure")
        problem = await reader.reason_of(each.last_failure) if failed else None
        at = each.last_started_time if each.HasField("last_started_time") else each.scheduled_time
        entry = TimelineEntry(
            at=_moment(at), event="step", text=text, tries=each.attempt, problem=problem
        )
        reader.entries.append(entry)
    return reader.entries


class _Reader:
    """Makes entries of the events of a history."""

    def __init__(self, client: Client) -> None:
        self.entries: list[TimelineEntry] = []
        self._client = client
        self._scheduled: dict[int, tuple[datetime, str]] = {}
        self._tries: dict[int, tuple[int, str | None]] = {}

    async def read(self, event: HistoryEvent) -> None:
        """Add what an event tells."""
        match event.event_type:
            case Event.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
                began = event.workflow_execution_started_event_attributes
                text = "continued" if began.continued_execution_run_id else "started"
                self._add(event, "started", text)
            case Event.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
                scheduled = event.activity_task_scheduled_event_attributes
                name = await self._summary(event) or _words(scheduled.activity_type.name)
                self._scheduled[event.event_id] = (_moment(event.event_time), name)
            case Event.EVENT_TYPE_ACTIVITY_TASK_STARTED:
                tried = event.activity_task_started_event_attributes
                failed = tried.HasField("last_failure")
                last = await self.reason_of(tried.last_failure) if failed else None
                self._tries[tried.scheduled_event_id] = (tried.attempt, last)
            case Event.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
                self._step(event, event.activity_task_completed_event_attributes.scheduled_event_id)
            case Event.EVENT_TYPE_ACTIVITY_TASK_FAILED:
                failed = event.activity_task_failed_event_attributes
                problem = await self.reason_of(failed.failure)
                self._step(event, failed.scheduled_event_id, problem)
            case Event.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
                late = event.activity_task_timed_out_event_attributes
                problem = await self.reason_of(late.failure)
                self._step(event, late.scheduled_event_id, problem)
            case Event.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
                stopped = event.activity_task_canceled_event_attributes
                self._step(event, stopped.scheduled_event_id, "was cancelled")
            case Event.EVENT_TYPE_MARKER_RECORDED:
                await self._local_step(event)
            case Event.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:
                await self._state(event)
            case Event.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
                asked = event.workflow_execution_update_accepted_event_attributes.accepted_request
                await self._given(event, "answer", asked.input.name, asked.input.args)
            case Event.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
                signal = event.workflow_execution_signaled_event_attributes
                await self._given(event, "message", signal.signal_name, signal.input)
            case Event.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED:
                child = event.child_workflow_execution_started_event_attributes
                self._add(event, "child", f"{child.workflow_execution.workflow_id} started")
            case Event.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_FAILED:
                child = event.child_workflow_execution_failed_event_attributes
                text = f"{child.workflow_execution.workflow_id} failed"
                self._add(event, "child", text, problem=await self.reason_of(child.failure))
            case kind if kind in _ENDS:
                self._add(event, "ended", _ENDS[kind], problem=await self._why_ended(event))
            case _:
                pass

    def cut(self, event: HistoryEvent) -> None:
        """Say that nothing is read behind an event."""
        self._add(event, "state", f"events after the first {MOST_EVENTS:,} are only in Temporal")

    def _add(self, event: HistoryEvent, kind: str, text: str, **more: Any) -> None:
        at = _moment(event.event_time)
        self.entries.append(TimelineEntry(at=at, event=kind, text=_short(text), **more))

    def _step(self, event: HistoryEvent, scheduled: int, problem: str | None = None) -> None:
        since, name = self._scheduled.pop(scheduled, (_moment(event.event_time), "a step"))
        tries, last = self._tries.pop(scheduled, (1, None))
        seconds = (_moment(event.event_time) - since).total_seconds()
        why = problem or (last and f"failed before: {last}")
        self._add(event, "step", name, tries=tries, seconds=round(seconds, 3), problem=why)

    async def _local_step(self, event: HistoryEvent) -> None:
        marker = event.marker_recorded_event_attributes
        if marker.marker_name != "core_local_activity" or "data" not in marker.details:
            return
        data = json.loads(marker.details["data"].payloads[0].data)
        name = await self._summary(event) or _words(str(data.get("activity_type")))
        problem = await self.reason_of(marker.failure) if marker.HasField("failure") else None
        self._add(event, "step", name, tries=int(data.get("attempt") or 1), problem=problem)

    async def _state(self, event: HistoryEvent) -> None:
        changed = event.upsert_workflow_search_attributes_event_attributes.search_attributes
        payload = changed.indexed_fields.get(attributes.STATE.name)
        state = None if payload is None else json.loads(payload.data or b"null")
        if isinstance(state, str):
            said = "waits for a person" if state == "parked" else _words(state.lower())
            self._add(event, "state", said)

    async def _given(self, event: HistoryEvent, kind: str, name: str, given: Payloads) -> None:
        if name.startswith("__"):
            return
        values = await self._decoded(given.payloads)
        fields: Mapping[str, Any] = _fields(values[0]) if values else {}
        self._add(event, kind, _words(name), by=_text(fields, "by"), reason=_text(fields, "reason"))

    async def _summary(self, event: HistoryEvent) -> str | None:
        if not event.user_metadata.HasField("summary"):
            return None
        [text] = await self._decoded([event.user_metadata.summary])
        return text if isinstance(text, str) else None

    async def _why_ended(self, event: HistoryEvent) -> str | None:
        if event.HasField("workflow_execution_failed_event_attributes"):
            return await self.reason_of(event.workflow_execution_failed_event_attributes.failure)
        return _short(event.workflow_execution_terminated_event_attributes.reason) or None

    async def reason_of(self, failure: Failure) -> str:
        """What docflow itself says of a failure.

        What caused that is for logs, and may name paths.
        """
        message = await self._message(failure)
        while failure.HasField("cause") and not failure.HasField("application_failure_info"):
            failure = failure.cause
            message = await self._message(failure) or message
        return _short(message)

    async def _message(self, failure: Failure) -> str:
        if not failure.HasField("encoded_attributes"):
            return failure.message
        [said] = await self._decoded([failure.encoded_attributes])
        return _text(_fields(said), "message") or failure.message

    async def _decoded(self, payloads: Sequence[Payload]) -> Sequence[Any]:
        return await self._client.data_converter.decode(payloads)


_ENDS: Final[Mapping[int, str]] = {
    Event.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED: "ended",
    Event.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED: "failed",
    Event.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT: "ran out of time",
    Event.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED: "was cancelled",
    Event.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED: "was terminated",
    Event.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW: "continues with a new history",
}


def _short(text: str) -> str:
    return printable(text.replace("\n", " "))[:_LONGEST]


def _words(name: str) -> str:
    return name.replace("_", " ").replace(".", ": ")


def _moment(at: Timestamp) -> datetime:
    return at.ToDatetime(tzinfo=UTC)


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return _short(value) if isinstance(value, str) and value else None
