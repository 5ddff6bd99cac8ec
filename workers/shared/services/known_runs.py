"""The runs of all pipelines by the ids that people know them by, and what can be done to each.

Whatever handles runs of all pipelines asks this module, and names none of them. A run's row says
where it stands; Temporal says as well what has no row, and what was ended from outside.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from workers import catalogue
from workers.shared.register import Pipeline, Run, RunGroup, recognise
from workers.shared.services.errors import InvalidRequest
from workflows.shared.dependencies import WAITING, WAITS
from workflows.shared.records import TERMINATED
from workflows.shared.runs import RunFilter, RunRecord, RunState

if TYPE_CHECKING:
    from temporalio.client import WorkflowExecution

    from workers.shared.services.runs import TemporalRuns

PARKED: Final = "parked"
"""What people may also call the state of a run that waits for a person."""
_SHOWN: Final = 12
"""Characters of an id that is a digest, for people."""
_DIGEST: Final = 64


async def awaiting(
    environment: Mapping[str, str], pipeline: Pipeline, limit: int
) -> Sequence[RunRecord]:
    """Runs of a pipeline that wait for a person, or ended and left something to one.

    The newest change comes first. Temporal knows which they are, and rows why; if one of both does
    not answer, the other has to do.

    Args:
        environment: Settings.
        pipeline: Whose runs.
        limit: At most so many.

    Raises:
        PortError: Neither answers.
    """
    from adapters.database.runs import SqlRuns
    from adapters.ports.errors import PortError
    from workers.shared.errors import TemporalUnreachable
    from workers.shared.services.errors import TemporalUnavailable
    from workers.shared.services.runs import open_runs
    from workers.shared.tables import open_tables

    try:
        runs = await open_runs(environment)
        executions = await runs.awaiting(f"Pipeline = '{pipeline.name}'", limit)
    except (TemporalUnreachable, TemporalUnavailable):
        waiting = RunFilter(limit, pipelines=[pipeline.name], needs_attention=True)
        async with open_tables(environment) as database:
            return await SqlRuns(database).list(waiting)
    known: Mapping[str, RunRecord] = {}
    if executions and pipeline.has_rows:
        # What waits is listed also while the database cannot say why.
        with suppress(PortError):
            async with open_tables(environment) as database:
                known = await SqlRuns(database).of([each.id for each in executions])
    found = [await _since(each, pipeline, known.get(each.id)) for each in executions]
    found = list(await explained(runs, pipeline, found))
    return sorted(found, key=lambda each: each.changed_at, reverse=True)


async def explained(
    runs: "TemporalRuns", pipeline: Pipeline, waiting: Sequence[RunRecord]
) -> Sequence[RunRecord]:
    """Runs that wait, with what their worker says where a row does not say why."""
    from workers.shared.services.inbox import gather_bounded

    silent = any(each.reason is None for each in waiting)
    # Without a worker, each question would take its whole time.
    if not silent or not await runs.pollers(pipeline.task_queue):
        return waiting
    return await gather_bounded(waiting, partial(_explained, runs, pipeline))


def refuse_unknown(groups: Sequence[RunGroup], state: str) -> None:
    """Refuse a state that no run can be in.

    Raises:
        InvalidRequest: With the states that there are.
    """
    own = (each for group in groups if isinstance(group, Pipeline) for each in group.own_states)
    of_registers = (each for group in groups for each in group.states)
    every = {each.lower() for each in (*RunState, PARKED, TERMINATED, *of_registers, *own)}
    if state.lower() not in every:
        raise InvalidRequest(f"no run can be {state}; there are {', '.join(sorted(every))}")


async def _since(run: "WorkflowExecution", group: RunGroup, row: RunRecord | None) -> RunRecord:
    """The row of a run, or what Temporal knows; since when it waits, Temporal knows."""
    record = await record_of(run, group)
    if row is None:
        return record
    state = RunState.NEEDS_ATTENTION if row.is_open else row.state
    known = {"state": state, "needs_attention": True, "changed_at": record.changed_at}
    return row.model_copy(update=known)


async def _explained(runs: "TemporalRuns", group: RunGroup, record: RunRecord) -> RunRecord:
    """A run whose row does not say why it waits, with what its worker says, if that answers."""
    from workers.shared.services.errors import ServiceError
    from workers.shared.services.inbox import reason_of, reports_reason

    run = None if record.reason else group.recognise(record.answers_at)
    if run is None or not reports_reason(run):
        return record
    with suppress(ServiceError):
        return record.model_copy(update={"reason": await reason_of(runs, run) or None})
    return record


async def in_temporal(
    runs: "TemporalRuns", group: RunGroup, wanted: RunFilter, most: int
) -> Sequence[RunRecord]:
    """Runs of a group without rows, within the retention of Temporal.

    Args:
        runs: Of the namespace.
        group: Whose runs.
        wanted: Which of them.
        most: Runs that are looked at.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    from workers.shared.services.runs import is_in, quoted

    # Of these, Temporal alone can say nothing.
    if any(each is not None for each in (wanted.owner, wanted.text, wanted.since)):
        return ()
    named = {"Pipeline": group.name, "DocumentType": wanted.kind, "ProjectId": wanted.project}
    scope = [f"{name} = {quoted(each)}" for name, each in named.items() if each is not None]
    if wanted.state is not None:
        spelled = (each for each in group.states if each.lower() == wanted.state.lower())
        scope.append(is_in(next(spelled, wanted.state)))
    look = runs.awaiting if wanted.needs_attention else runs.list
    return [await record_of(each, group) for each in await look(" AND ".join(scope), most)]


async def record_of(run: "WorkflowExecution", group: RunGroup) -> RunRecord:
    """A run as Temporal knows it, where it has no row."""
    from workflows.shared import attributes

    found = run.typed_search_attributes
    state, own = _state_of(run)
    return RunRecord(
        id=run.id,
        pipeline=group.name,
        kind=found.get(attributes.DOCUMENT_TYPE) or run.workflow_type,
        key=run.id,
        short=run.id,
        state=state,
        own_state=own,
        needs_attention=bool(found.get(attributes.NEEDS_ATTENTION)),
        reason=await _waits(run),
        waits_for=found.get(attributes.WAITING_FOR) if state is RunState.WAITING else None,
        counts={},
        links={},
        project=found.get(attributes.PROJECT_ID),
        organisation_id=attributes.organisation_of(found),
        answers_at=run.id,
        created_at=run.start_time,
        changed_at=found.get(attributes.WAITING_SINCE) or run.start_time,
        ended_at=run.close_time,
    )


async def _waits(run: "WorkflowExecution") -> str | None:
    """What an open run waits for; None: for nothing, or a person."""
    from temporalio.client import WorkflowExecutionStatus

    from workflows.shared import attributes

    found = run.typed_search_attributes
    if run.status is not WorkflowExecutionStatus.RUNNING or found.get(attributes.STATE) != WAITING:
        return None
    waits = (await run.memo()).get(WAITS)
    outage = found.get(attributes.WAITING_FOR)
    return waits if isinstance(waits, str) else outage and f"waits for {outage}"


def is_parked(run: "WorkflowExecution | None") -> bool:
    """Whether a run waits for an answer to what has failed, as Temporal knows."""
    if run is None:
        return False
    from workflows.shared import attributes

    return run.typed_search_attributes.get(attributes.STATE) == PARKED and not _was_terminated(run)


def _was_terminated(run: "WorkflowExecution") -> bool:
    from temporalio.client import WorkflowExecutionStatus

    return run.status is WorkflowExecutionStatus.TERMINATED


def _state_of(run: "WorkflowExecution") -> tuple[RunState, str]:
    """The state for people, and that of the pipeline; one that was terminated keeps the latter."""
    from temporalio.client import WorkflowExecutionStatus as Status

    from workflows.shared import attributes

    own = run.typed_search_attributes.get(attributes.STATE) or ""
    match run.status:
        case Status.TERMINATED:
            return RunState.CANCELLED, TERMINATED
        case Status.CANCELED:
            return RunState.CANCELLED, own
        case Status.COMPLETED:
            return RunState.COMPLETED, own
        case Status.FAILED | Status.TIMED_OUT:
            return RunState.FAILED, own
        case _:
            if run.typed_search_attributes.get(attributes.NEEDS_ATTENTION):
                return RunState.NEEDS_ATTENTION, own
            states = {PARKED: RunState.NEEDS_ATTENTION, WAITING: RunState.WAITING}
            return states.get(own, RunState.RUNNING), own


def name_of(record: RunRecord) -> str:
    """How people name a run: by its key, or its id where the key could be of another run."""
    return _named(record.key, record.id)


def _named(key: str, id: str) -> str:
    if key.partition("/")[0] in prefixes():
        return id
    return key[:_SHOWN] if len(key) == _DIGEST else key


def prefixes() -> frozenset[str]:
    """What workflow ids begin with, up to the first slash."""
    from workflows.shared.notifications import DELIVERY_PREFIX
    from workflows.shared.records import REJECTION_PREFIX

    kinds = (kind for group in catalogue.run_groups() for kind in group.runs)
    return frozenset((DELIVERY_PREFIX, REJECTION_PREFIX, *(kind.prefix for kind in kinds)))


def unfinished(text: str) -> Sequence[Run]:
    """The runs whose id is a text after its prefix: their row may not have been written.

    Raises:
        InvalidRequest: The text has the form of no id.
    """
    first, slash, rest = text.partition("/")
    is_key = bool(text) and text.isprintable() and "/" not in rest
    if not is_key or (slash and first in prefixes()):
        raise InvalidRequest(f"{text!r} names no run; write {naming()}")
    kinds = [kind for each in catalogue.PIPELINES for kind in each.runs if kind.row is not None]
    known = sorted({kind.prefix for kind in kinds})
    found = (recognise(catalogue.PIPELINES, f"{prefix}/{text}") for prefix in known)
    return [run for run in found if run is not None]


def naming() -> str:
    """How people may write ids."""
    groups = catalogue.run_groups()
    return "; ".join(each.naming or f"a workflow id of {each.name}" for each in groups)


def run_name(run: Run) -> str:
    """How people name a run: by its key, or its id where the key could be of another run."""
    row = None if run.kind.row is None else run.kind.row(run.key)
    is_own = row is not None and row.id == run.workflow_id
    return _named(row.key, run.workflow_id) if row is not None and is_own else run.workflow_id


def refuse_missing(run: Run, verb: str) -> None:
    """Refuse a verb that a run does not offer.

    Raises:
        InvalidRequest: With what is offered.
    """
    offered = run.kind.verbs
    if verb not in offered:
        listed = ", ".join(offered) or "nothing but show"
        raise InvalidRequest(f"{run_name(run)} has no {verb}; offered: {listed}")
