"""What happens by the clock, and how Temporal is brought in line with it."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleDescription,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleState,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.common import SearchAttributePair, TypedSearchAttributes
from temporalio.service import RPCError, RPCStatusCode

from workers import catalogue
from workers.shared.connect import reason_of
from workers.shared.declared_schedules import Declared, daily, every
from workers.shared.errors import TemporalUnreachable
from workers.shared.register import Pipeline
from workflows.shared import attributes
from workflows.shared.contracts import PlainRecord, served
from workflows.shared.records import ROW_RETENTION, RUN_SWEEPER, RowRetentionInput, RunSweepInput


def declared_schedules(
    names: Collection[str] | None = None, environment: Mapping[str, str] | None = None
) -> Mapping[str, Declared]:
    """The schedules of these pipelines of the catalogue, of all when None; id to its row.

    Args:
        names: Of pipelines.
        environment: Settings that declare some; None: those that docflow itself declares.

    Raises:
        SettingsError: A setting is wrong.
    """
    return {
        id: row
        for pipeline in catalogue.PIPELINES
        if names is None or pipeline.name in names
        for id, row in (
            *pipeline.schedules().items(),
            *_sweeps(pipeline),
            *_retention(pipeline),
            *((pipeline.schedules_of_settings(environment) or {}) if environment else {}).items(),
        )
    }


def _sweeps(pipeline: Pipeline) -> Sequence[tuple[str, Declared]]:
    if pipeline.sweep_id is None:
        return ()
    declared = Declared(
        pipeline=pipeline.name,
        workflow=RUN_SWEEPER,
        task_queue=pipeline.task_queue,
        input=RunSweepInput(pipeline=pipeline.name),
        at=every(15),
        # The next one finds whatever one that was missed would have found.
        catch_up=timedelta(minutes=15),
    )
    return ((pipeline.sweep_id, declared),)


def _retention(pipeline: Pipeline) -> Sequence[tuple[str, Declared]]:
    if pipeline.retention_id is None:
        return ()
    declared = Declared(
        pipeline=pipeline.name,
        workflow=ROW_RETENTION,
        task_queue=pipeline.task_queue,
        input=RowRetentionInput(pipeline=pipeline.name),
        at=daily(4),
        # The next run removes what one that was missed would have.
        catch_up=timedelta(hours=12),
    )
    return ((pipeline.retention_id, declared),)


class Change(StrEnum):
    """What a schedule needed to be as declared."""

    NONE = "as declared"
    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"


class ScheduleView(PlainRecord):
    """A declared schedule, and what Temporal knows of it."""

    id: Annotated[str, served("Its id in Temporal", "imports-retention")]
    workflow: Annotated[str, served("Type of the runs that it starts", "RowRetention")]
    when: Annotated[str, served("When it starts one", "daily at 04:00 UTC")]
    state: Annotated[str, served("`missing`, `differs`, `paused` or `active`", "active")]
    next_run: Annotated[
        datetime | None, served("Next start; null: none is planned", "2026-01-04T04:00:00Z")
    ] = None
    last_run: Annotated[
        datetime | None, served("Last start; null: none yet", "2026-01-03T04:00:00Z")
    ] = None
    pipeline: Annotated[str, served("Whose workers keep it as declared", "a-name")] = ""
    note: Annotated[
        str | None, served("What a person did last, and why", "ann paused it: audit")
    ] = None


async def reconcile(
    client: Client, pipelines: Collection[str], table: Mapping[str, Declared] | None = None
) -> Mapping[str, Change]:
    """Bring the schedules of some pipelines in line with what is declared; leave others alone.

    A paused schedule stays paused. Several workers may do this at once: the later one finds what
    the first one made.

    Args:
        client: Of the namespace whose schedules these are.
        pipelines: By name.
        table: Takes the place of what the catalogue declares.

    Returns:
        What was done to each schedule.

    Raises:
        TemporalUnreachable: Temporal does not answer, or does not let us.
    """
    return {
        id: await _bring_in_line(client, id, row)
        for id, row in (declared_schedules() if table is None else table).items()
        if row.pipeline in pipelines
    }


async def delete_undeclared(
    client: Client, pipelines: Collection[str], environment: Mapping[str, str]
) -> Mapping[str, Change]:
    """Delete the schedules that settings of some pipelines declared, and do no longer.

    Where the settings name no such declarations, nothing is deleted.

    Raises:
        SettingsError: A setting is wrong.
        TemporalUnreachable: Temporal does not answer, or does not let us.
    """
    done: dict[str, Change] = {}
    for pipeline in catalogue.PIPELINES:
        declared = pipeline.schedules_of_settings(environment)
        if pipeline.name not in pipelines or declared is None:
            continue
        try:
            async for found in await client.list_schedules():
                own = found.id.startswith(tuple(pipeline.schedule_prefixes))
                if own and found.id not in declared and await _delete(client, found.id):
                    done[found.id] = Change.DELETED
        except RPCError as error:
            raise _lost("of the settings", error) from error
    return done


async def _delete(client: Client, id: str) -> bool:
    try:
        await client.get_schedule_handle(id).delete()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            # The list lags behind.
            return False
        raise
    return True


async def look(
    client: Client, table: Mapping[str, Declared] | None = None
) -> Sequence[ScheduleView]:
    """Every declared schedule, without changing any.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    rows = declared_schedules() if table is None else table
    return [await _view(client, id, row) for id, row in rows.items()]


async def _view(client: Client, id: str, declared: Declared) -> ScheduleView:
    view = ScheduleView(
        id=id,
        workflow=declared.workflow,
        when=declared.at.comment or "",
        state="missing",
        pipeline=declared.pipeline,
    )
    found = await _describe(client, id)
    if found is None:
        return view
    paused = "paused" if found.schedule.state.paused else "active"
    seen = {
        "state": paused if await _is_declared(client, found.schedule, declared) else "differs",
        "next_run": next(iter(found.info.next_action_times), None),
        "last_run": max((run.scheduled_at for run in found.info.recent_actions), default=None),
        "note": found.schedule.state.note or None,
    }
    return view.model_copy(update=seen)


async def pause(client: Client, id: str, note: str, *, paused: bool) -> None:
    """Pause a schedule, or resume it; a restart of workers changes neither.

    Raises:
        RPCError: There is no such schedule, or Temporal does not answer.
    """
    handle = client.get_schedule_handle(id)
    await (handle.pause(note=note) if paused else handle.unpause(note=note))


async def trigger(client: Client, id: str, note: str | None = None) -> None:
    """Start a run of a schedule now; while one is under way, that one counts.

    Args:
        client: Of the namespace.
        id: Of the schedule.
        note: What its note says from now on; None: what it says.

    Raises:
        RPCError: There is no such schedule, or Temporal does not answer.
    """
    handle = client.get_schedule_handle(id)

    def noted(now: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = now.description.schedule
        schedule.state.note = note
        return ScheduleUpdate(schedule)

    if note is not None:
        await handle.update(noted)
    await handle.trigger()


async def _bring_in_line(client: Client, id: str, declared: Declared) -> Change:
    try:
        found = await _describe(client, id)
        if found is None:
            await client.create_schedule(id, _schedule(id, declared))
            return Change.CREATED
        if await _is_declared(client, found.schedule, declared):
            return Change.NONE
        await client.get_schedule_handle(id).update(lambda now: _updated(id, declared, now))
    except ScheduleAlreadyRunningError:
        # Another worker of this release was quicker by a moment.
        return Change.NONE
    except RPCError as error:
        raise _lost(id, error) from error
    return Change.UPDATED


async def _describe(client: Client, id: str) -> ScheduleDescription | None:
    try:
        return await client.get_schedule_handle(id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise _lost(id, error) from error


def _lost(id: str, error: RPCError) -> TemporalUnreachable:
    return TemporalUnreachable(
        f"cannot reconcile schedule {id}: {reason_of(error)}; "
        "does Temporal answer, and may we read and write schedules of this namespace?"
    )


def _schedule(id: str, declared: Declared, state: ScheduleState | None = None) -> Schedule:
    return Schedule(
        action=ScheduleActionStartWorkflow(
            declared.workflow,
            declared.input,
            # The server appends the time, so that no two runs share an id.
            id=f"schedule/{id}",
            task_queue=declared.task_queue,
            typed_search_attributes=_search_attributes(declared),
        ),
        spec=ScheduleSpec(calendars=[declared.at]),
        policy=_policy(declared),
        state=state or ScheduleState(),
    )


def _updated(id: str, declared: Declared, now: ScheduleUpdateInput) -> ScheduleUpdate:
    return ScheduleUpdate(_schedule(id, declared, now.description.schedule.state))


def _policy(declared: Declared) -> SchedulePolicy:
    return SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=declared.catch_up)


def _search_attributes(declared: Declared) -> TypedSearchAttributes:
    return TypedSearchAttributes([SearchAttributePair(attributes.PIPELINE, declared.pipeline)])


async def _is_declared(client: Client, schedule: Schedule, declared: Declared) -> bool:
    action = schedule.action
    return (
        schedule.spec == ScheduleSpec(calendars=[declared.at])
        and schedule.policy == _policy(declared)
        and isinstance(action, ScheduleActionStartWorkflow)
        and (action.workflow, action.task_queue) == (declared.workflow, declared.task_queue)
        and action.typed_search_attributes == _search_attributes(declared)
        and await _input_of(client, action) == [declared.input.model_dump(mode="json")]
    )


async def _input_of(client: Client, action: ScheduleActionStartWorkflow) -> list[Any]:
    payloads = [argument for argument in action.args if isinstance(argument, Payload)]
    return await client.data_converter.decode(payloads)
