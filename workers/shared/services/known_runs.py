"""The runs of all pipelines by the ids that people know them by, and what can be done to each.

Whatever handles runs of all pipelines asks this module, and names none of them. A run's row says
where it stands; Temporal says as well what has no row, and what was ended from outside.
"""

from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from workers import catalogue
from workers.shared.register import Pipeline, Run, RunGroup, load, recognise
from workers.shared.services.errors import InvalidRequest, NotFound
from workers.shared.services.run_actions import DefaultRunActions, RunActions
from workflows.shared.dependencies import WAITING, WAITS
from workflows.shared.records import TERMINATED
from workflows.shared.runs import RunFilter, RunRecord, RunState

if TYPE_CHECKING:
    from temporalio.client import WorkflowExecution

    from adapters.database.runs import SqlRuns
    from workers.shared.services.runs import TemporalRuns

PARKED: Final = "parked"
"""What people may also call the state of a run that waits for a person."""
_AWAITING: Final = (PARKED, RunState.NEEDS_ATTENTION)
_SHOWN: Final = 12
"""Characters of an id that is a digest, for people."""
_DIGEST: Final = 64


def of(pipeline: RunGroup) -> RunActions:
    """The verbs of one pipeline, loaded when they are asked for."""
    return DefaultRunActions(pipeline) if pipeline.verbs is None else load(pipeline.verbs)


@asynccontextmanager
async def open_table(environment: Mapping[str, str]) -> AsyncGenerator["SqlRuns"]:
    """The table of runs.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from adapters.database.runs import SqlRuns
    from workers.shared.tables import open_tables

    async with open_tables(environment) as database:
        yield SqlRuns(database)


@dataclass(frozen=True)
class Listed:
    """Runs, the newest change first."""

    runs: Sequence[RunRecord]
    problem: str | None = None
    """Why they are shown by their rows alone; None: as Temporal knows them as well."""


async def list_runs(
    environment: Mapping[str, str],
    groups: Sequence[RunGroup],
    wanted: RunFilter,
    *,
    needs_attention: bool = False,
) -> Listed:
    """List runs of some groups.

    Args:
        environment: Settings.
        groups: Whose runs.
        wanted: Which of them; its pipelines are those of the groups that have rows.
        needs_attention: Only runs that wait for a person, as the inbox shows them.

    Raises:
        InvalidRequest: No run can be in the state.
        Unavailable: The database does not answer.
    """
    if wanted.state is not None:
        refuse_unknown(groups, wanted.state)
    wanted = replace(wanted, pipelines=[each.name for each in groups if each.has_rows])
    if needs_attention or (wanted.state or "").lower() in _AWAITING:
        return await _listed_awaiting(environment, groups, wanted)
    known: Sequence[RunRecord] = ()
    if wanted.pipelines:
        async with open_table(environment) as table:
            known = await table.list(wanted)
    try:
        known = await _as_in_temporal(environment, groups, wanted, known)
    except _temporal_is_down() as error:
        if not wanted.pipelines:
            raise
        return Listed(known, str(error))
    newest = sorted(known, key=lambda each: each.changed_at, reverse=True)
    return Listed(newest[: wanted.limit])


async def _listed_awaiting(
    environment: Mapping[str, str], groups: Sequence[RunGroup], wanted: RunFilter
) -> Listed:
    try:
        found = await _awaiting(environment, groups, wanted)
    except _temporal_is_down() as error:
        async with open_table(environment) as table:
            wanted = replace(wanted, state=str(RunState.NEEDS_ATTENTION))
            return Listed(await table.list(wanted), str(error))
    newest = sorted(found, key=lambda each: each.changed_at, reverse=True)
    return Listed(newest[: wanted.limit])


def _temporal_is_down() -> tuple[type[Exception], ...]:
    from workers.shared.errors import TemporalUnreachable
    from workers.shared.services.errors import TemporalUnavailable

    return TemporalUnreachable, TemporalUnavailable


async def rows_of(environment: Mapping[str, str], ids: Collection[str]) -> Mapping[str, RunRecord]:
    """The rows of runs, by the workflow id that takes their answers.

    Raises:
        Unavailable: The database does not answer.
    """
    async with open_table(environment) as table:
        return await table.of(ids)


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


async def _awaiting(
    environment: Mapping[str, str], groups: Sequence[RunGroup], wanted: RunFilter
) -> Sequence[RunRecord]:
    """Runs that wait for a person, or ended and left something to one; rows say why."""
    from adapters.ports.errors import PortError
    from workers.shared.services.inbox import gather_bounded
    from workers.shared.services.runs import open_runs

    runs, found = await open_runs(environment), list[RunRecord]()
    for group in groups:
        executions = await runs.awaiting(_scope(group, wanted), wanted.limit)
        known: Mapping[str, RunRecord] = {}
        if executions and group.has_rows:
            # What waits is listed also while the database cannot say why.
            with suppress(PortError):
                known = await rows_of(environment, [each.id for each in executions])
        records = [await _since(each, group, known.get(each.id)) for each in executions]
        # Without a worker, each question would take its whole time.
        if isinstance(group, Pipeline) and await runs.pollers(group.task_queue):
            records = await gather_bounded(records, partial(_explained, runs, group))
        found += records
    return found


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


async def _as_in_temporal(
    environment: Mapping[str, str],
    groups: Sequence[RunGroup],
    wanted: RunFilter,
    known: Sequence[RunRecord],
) -> Sequence[RunRecord]:
    """What rows say, and what Temporal alone knows: runs without a row, and those ended outside."""
    without_rows = [each for each in groups if not each.has_rows]
    state = (wanted.state or "").lower()
    of_temporal = state in (WAITING, TERMINATED)
    # While no run of a pipeline is open, none waits for an outage, and Temporal is not asked.
    if (
        len(without_rows) < len(groups)
        and not of_temporal
        and not any(each.is_open for each in known)
    ):
        return known
    from workers.shared.services.runs import open_runs

    runs = await open_runs(environment)
    newest = await runs.newest([each.answers_at for each in known if each.is_open])
    seen = [await _seen(each, newest.get(each.answers_at)) for each in known]
    ids = {each.answers_at for each in seen}
    asked = groups if of_temporal else without_rows
    more = [each for group in asked for each in await _in_temporal(runs, group, wanted)]
    more = [each for each in more if each.id not in ids]
    if state == TERMINATED:
        more = await _last_terminated(runs, more)
    return [*(each for each in seen if not state or each.is_in(state)), *more]


async def _last_terminated(runs: "TemporalRuns", found: Sequence[RunRecord]) -> Sequence[RunRecord]:
    """Those that have states, and whose id has not run again."""
    listed = [each for each in found if (run := _recognised(each)) and run.kind.states]
    newest = await runs.newest([each.id for each in listed])
    return [each for each in listed if _was_terminated(newest[each.id])]


def _recognised(record: RunRecord) -> Run | None:
    return recognise(catalogue.run_groups(), record.answers_at)


async def _seen(record: RunRecord, run: "WorkflowExecution | None") -> RunRecord:
    """A run as Temporal knows it, where its row could not say so yet.

    If a run waits, is parked or continues, it may not have been able to write its row. If it was
    ended from outside, its row has the former state until the next sweep.
    """
    if run is None or not record.is_open:
        return record
    state, own = _state_of(run)
    if state is RunState.RUNNING and record.waits_for is not None:
        return record.model_copy(update={"state": state, "waits_for": None})
    if state is RunState.RUNNING or (not _was_terminated(run) and not state.is_open):
        return record
    own = own if _was_terminated(run) else record.own_state
    reason = await _waits(run) or record.reason
    return record.model_copy(update={"state": state, "own_state": own, "reason": reason})


async def _in_temporal(
    runs: "TemporalRuns", group: RunGroup, wanted: RunFilter
) -> Sequence[RunRecord]:
    """Runs that Temporal knows within its retention, the newest first."""
    from workers.shared.services.outages import noted
    from workers.shared.services.runs import is_in

    scope = _scope(group, wanted)
    if wanted.state is not None:
        spelled = (each for each in group.states if each.lower() == wanted.state.lower())
        scope += f" AND {is_in(next(spelled, wanted.state))}"
    found = await runs.list(scope, wanted.limit)
    records = [await record_of(each, group) for each in found]
    return await noted(runs, records) if group is catalogue.OUTAGE_RUNS else records


def _scope(group: RunGroup, wanted: RunFilter) -> str:
    """A condition on visibility."""
    from workers.shared.services.runs import quoted

    named = {"Pipeline": group.name, "DocumentType": wanted.kind, "ProjectId": wanted.project}
    given = (f"{name} = {quoted(each)}" for name, each in named.items() if each is not None)
    return " AND ".join(given)


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
    if record.key.partition("/")[0] in prefixes():
        return record.id
    return record.key[:_SHOWN] if len(record.key) == _DIGEST else record.key


def prefixes() -> frozenset[str]:
    """What workflow ids begin with, up to the first slash."""
    from workflows.shared.notifications import DELIVERY_PREFIX
    from workflows.shared.records import REJECTION_PREFIX

    kinds = (kind for group in catalogue.run_groups() for kind in group.runs)
    return frozenset((DELIVERY_PREFIX, REJECTION_PREFIX, *(kind.prefix for kind in kinds)))


async def find(text: str, environment: Mapping[str, str]) -> tuple[RunActions, Run]:
    """The run that a person means: a full workflow id wins over every short form.

    Returns:
        The verbs of its pipeline, and the run.

    Raises:
        InvalidRequest: It has the form of no id, or fits several runs.
        NotFound: It has the form of one, and there is no such run.
        ServiceError: The database does not answer.
    """
    text = text.strip()
    if (run := recognise(catalogue.run_groups(), text)) is not None:
        return of(run.pipeline), run
    first, slash, rest = text.partition("/")
    is_key = bool(text) and text.isprintable() and "/" not in rest
    if not is_key or (slash and first in prefixes()):
        raise InvalidRequest(f"{text!r} names no run; write {_naming()}")
    found = _unfinished(text)
    # A key with two parts is an id without its beginning, unless it may be that of several runs.
    if not slash or len(found) != 1:
        found = await _known(text, environment) or found
    if len(found) == 1:
        return of(found[0].pipeline), found[0]
    if found:
        candidates = ", ".join(run.workflow_id for run in found)
        raise InvalidRequest(f"{text} names several runs: write one of {candidates}")
    raise NotFound(f"there is no run {text}: `docflow list` shows what there is; write {_naming()}")


def _naming() -> str:
    return "; ".join(of(group).naming for group in catalogue.run_groups())


async def _known(text: str, environment: Mapping[str, str]) -> Sequence[Run]:
    """The runs whose row has this short form."""
    async with open_table(environment) as table:
        records = await table.find(text)
    found = (recognise(catalogue.PIPELINES, record.answers_at) for record in records)
    return [run for run in found if run is not None]


def _unfinished(text: str) -> Sequence[Run]:
    """The runs whose id is the text after its prefix: their row may not have been written."""
    kinds = [kind for each in catalogue.PIPELINES for kind in each.runs if kind.row is not None]
    prefixes = sorted({kind.prefix for kind in kinds})
    found = (recognise(catalogue.PIPELINES, f"{prefix}/{text}") for prefix in prefixes)
    return [run for run in found if run is not None]


def refuse_reason(verbs: RunActions, run: Run, verb: str) -> None:
    """Refuse a reason where the answer has no place for it.

    Raises:
        InvalidRequest: It has none.
    """
    contract = {**run.kind.answers, **run.kind.events}[verb]
    if "reason" not in contract.model_fields:
        raise InvalidRequest(f"{verb} of {verbs.name(run)} keeps no reason; leave it out")


def refuse_missing(verbs: RunActions, run: Run, verb: str) -> None:
    """Refuse a verb that a run does not offer.

    Raises:
        InvalidRequest: With what is offered.
    """
    offered = run.kind.verbs
    if verb not in offered:
        listed = ", ".join(offered) or "nothing but show"
        raise InvalidRequest(f"{verbs.name(run)} has no {verb}; offered: {listed}")
