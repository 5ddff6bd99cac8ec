"""Runs of all pipelines, for those who may see them and answer them."""

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from adapters.database.runs import RunsOverview, SqlRuns
from adapters.ports.errors import PortError
from workers import catalogue
from workers.shared.register import Run, RunGroup, recognise
from workers.shared.services import known_runs
from workers.shared.services.errors import (
    InvalidRequest,
    NotFound,
    ServiceError,
    TemporalUnavailable,
    WrongState,
    no_role,
)
from workers.shared.services.identity import Identity
from workers.shared.services.inbox import MOST, gather_bounded, inbox_scope
from workers.shared.services.lists import watched
from workers.shared.services.run_actions import (
    AnswerRequest,
    DefaultServedRuns,
    Report,
    ServedRuns,
)
from workers.shared.services.runs import (
    RunView,
    TemporalRuns,
    needing_attention,
    temporal_errors,
)
from workers.shared.services.timeline import TimelineEntry, timeline_of
from workers.shared.services.versions import require_version
from workers.shared.settings.common import ScratchSettings
from workflows.shared.records import TERMINATED
from workflows.shared.runs import RunChange, RunFilter, RunRecord, RunState, Visible

MOST_ANSWERED: Final = 1_000
"""Runs that one request answers."""
_CANCEL: Final = "cancel"
"""What an open run takes in any state; other answers are for runs that are parked."""
_AWAITING: Final = (known_runs.PARKED, RunState.NEEDS_ATTENTION)


class Span(StrEnum):
    """How much of the past an overview shows."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"

    @property
    def steps(self) -> int:
        """How many steps of time it has, the present one included."""
        return {Span.HOUR: 60, Span.DAY: 24, Span.MONTH: 30}[self]

    @property
    def step(self) -> timedelta:
        """Length of a step."""
        return timedelta(**{{Span.HOUR: "minutes", Span.DAY: "hours", Span.MONTH: "days"}[self]: 1})


@dataclass(frozen=True)
class RunDetails:
    """One run, as its row and Temporal know it."""

    run: RunRecord
    view: RunView | None
    """None: Temporal does not keep it any more."""
    answers: Sequence[str]
    """Answers that it takes now."""
    has_report: bool
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What its pipeline knows of it."""


@dataclass(frozen=True)
class Answered:
    """What became of an answer to many runs."""

    found: Sequence[RunRecord]
    """Runs that are parked and take the answer."""
    left_out: Sequence[str]
    """Ids of runs that do not take it, or whose row does not say why they are parked."""
    failed: Mapping[str, str]
    """Id of a run that refused, to the reason."""
    more: bool
    """There are more than one request answers."""


class RunService:
    """What people see of runs, and do to them.

    Args:
        rows: The table of runs.
        client: Of Temporal.
        served: What is done to the runs of each pipeline, by its name.
        environment: For addresses in Temporal's user interface, and the folder of reports.
    """

    def __init__(
        self,
        rows: SqlRuns,
        client: Client,
        served: Mapping[str, ServedRuns],
        environment: Mapping[str, str],
    ) -> None:
        self._rows = rows
        self._client = client
        self._runs = TemporalRuns(client, environment)
        self._served = served
        self.scratch = ScratchSettings.read(environment).folder

    async def list(self, who: Identity, wanted: RunFilter) -> Sequence[RunRecord]:
        """Runs that a person may see, the newest change first, or the oldest.

        If only runs that need attention are wanted, those are listed that the inbox shows.

        Raises:
            Forbidden: The person has no role.
            InvalidRequest: There is no such pipeline, or no run can be in the state.
        """
        wanted = _seen_by(who, wanted)
        if (wanted.state or "").lower() in _AWAITING:
            wanted = replace(wanted, state=None, needs_attention=True)
        rows = await self._in_rows(who, wanted)
        if not (others := await self._without_rows(who, wanted)):
            return rows
        # Rows of the same moment keep the order of the database, by which a page continues.
        newest_first = not wanted.oldest_first
        found = sorted([*rows, *others], key=lambda each: each.changed_at, reverse=newest_first)
        return found[: wanted.limit]

    async def _without_rows(self, who: Identity, wanted: RunFilter) -> Sequence[RunRecord]:
        """Runs of this page that Temporal alone knows."""
        named = wanted.pipelines
        groups: Sequence[RunGroup] = (
            catalogue.PIPELINES if named is None else catalogue.run_groups()
        )
        found: list[RunRecord] = []
        for group in groups if who.is_operator else ():
            if not group.has_rows and (named is None or group.name in named):
                found += await known_runs.in_temporal(self._runs, group, wanted, MOST_ANSWERED)
        ids = wanted.ids
        chosen = [each for each in found if ids is None or each.id in ids]
        return [each for each in chosen if _is_behind(each, wanted)]

    async def _in_rows(self, who: Identity, wanted: RunFilter) -> Sequence[RunRecord]:
        if not wanted.needs_attention:
            return await self._rows.list(wanted)
        waiting = await self._waiting(who)
        rows = await self._rows.list(replace(wanted, attention_of=frozenset(waiting)))
        found = {each.id: _needing_attention(each) for each in rows}
        for pipeline in catalogue.PIPELINES:
            silent = [
                each
                for each in found.values()
                if each.pipeline == pipeline.name
                and each.reason is None
                and known_runs.is_parked(waiting.get(each.answers_at))
            ]
            with suppress(TemporalUnavailable):
                explained = await known_runs.explained(self._runs, pipeline, silent)
                found |= {each.id: each for each in explained}
        return list(found.values())

    async def _waiting(self, who: Identity) -> Mapping[str, WorkflowExecution]:
        """Runs that wait as Temporal knows them, by id; none while it does not answer."""
        scope = inbox_scope(who)
        if scope is None:
            return {}
        with suppress(TemporalUnavailable), temporal_errors():
            return {run.id: run for run in await needing_attention(self._client, scope, MOST)}
        return {}

    async def get(self, who: Identity, id: str) -> RunDetails:
        """One run, with what its pipeline knows of it.

        Args:
            who: The person.
            id: As for `row`.

        Raises:
            Forbidden: The person has no role.
            InvalidRequest: The text names no run, or several.
            NotFound: There is none of this id that the person may see.
        """
        found = await self._seen(await self.row(who, id))
        run = recognise(catalogue.run_groups(), found.run.answers_at)
        details: Mapping[str, Any] | None = None
        # A row is shown also if its pipeline cannot say more at the moment.
        with suppress(NotFound, TemporalUnavailable):
            details = run and await self._details(who, run)
        return replace(found, details=details or {})

    async def _details(self, who: Identity, run: Run) -> Mapping[str, Any] | None:
        own = await self._of(run).details(who, run)
        if own is not None or run.kind.status is None:
            return own
        status = await self._runs.query(run.workflow_id, "status", run.kind.status)
        return None if status is None else status.model_dump(mode="json")

    async def _seen(self, found: RunRecord) -> RunDetails:
        """A run as its row and Temporal know it."""
        view = None
        # A row is shown also while Temporal does not answer.
        with suppress(TemporalUnavailable):
            view = await self._runs.look(found.answers_at)
        answers = _answers(found, view)
        if view is not None and view.parked:
            found = _needing_attention(found)
        elif view is not None and view.status == TERMINATED and found.is_open:
            ended = {"state": RunState.CANCELLED, "own_state": TERMINATED}
            found = found.model_copy(update=ended)
        elif view is not None and not view.closed and _is_outdated(found, view):
            found = _going_on(found)
        return RunDetails(found, view, answers, "report" in found.links)

    async def row(self, who: Identity, id: str) -> RunRecord:
        """The row of a run, or what Temporal alone knows of it.

        Args:
            who: The person.
            id: Workflow id, which wins over every short form; or key, or the part of it that people
                know, or at least 8 hexadecimal digits that a key begins with.

        Raises:
            Forbidden: The person has no role.
            InvalidRequest: The text names no run, or several.
            NotFound: There is none of this id that the person may see.
        """
        id, visible = id.strip(), visible_to(who)
        found = await self._rows.get(id, visible)
        if found is None and recognise(catalogue.run_groups(), id) is not None:
            found = await self._in_temporal(id, visible)
        elif found is None:
            found = await self._named(id, visible)
        if found is None:
            raise NotFound(f"there is no run {id}: write {known_runs.naming()}")
        return found

    async def _named(self, text: str, visible: Visible) -> RunRecord | None:
        """The run that a person means by a short form."""
        unfinished = known_runs.unfinished(text)
        found = await self._rows.find(text, visible)
        if len(found) > 1:
            candidates = ", ".join(each.answers_at for each in found)
            raise InvalidRequest(f"{text} names several runs: write one of {candidates}")
        if found or len(unfinished) != 1:
            return next(iter(found), None)
        return await self._in_temporal(unfinished[0].workflow_id, visible)

    async def _in_temporal(self, id: str, visible: Visible) -> RunRecord | None:
        known = recognise(catalogue.run_groups(), id)
        if known is None:
            return None
        # A row that the person may not see says more than Temporal; one may have come just now.
        row = (await self._rows.of([id])).get(id)
        if row is not None:
            return row if visible.shows(row.organisation_id) else None
        with temporal_errors():
            try:
                found = await self._client.get_workflow_handle(id).describe()
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return None
                raise
        record = await known_runs.record_of(found, known.pipeline)
        return record if visible.shows(record.organisation_id) else None

    async def timeline(self, who: Identity, id: str) -> Sequence[TimelineEntry]:
        """What has happened to a run, the first first; empty: Temporal does not keep it any more.

        Raises:
            Forbidden: The person has no role.
            NotFound: There is none of this id that the person may see.
            TemporalUnavailable: Temporal does not answer.
        """
        found = await self.row(who, id)
        with temporal_errors():
            return await timeline_of(self._client, found.answers_at)

    async def answer(
        self,
        who: Identity,
        id: str,
        request: AnswerRequest,
        versions: Collection[str] | None = None,
    ) -> RunDetails:
        """Answer a run in the name of a person; the run afterwards.

        Args:
            who: The person.
            id: As for `row`.
            request: The answer.
            versions: Of which the person has seen one; None: the run is answered as it stands.

        Raises:
            Conflict: The run stands elsewhere than in each of `versions`.
            InvalidRequest: The run offers no such answer, or takes nothing of what is given.
            NotFound: There is none of this id that the person may see.
            ServiceError: The person may not, it refused, or no worker answered.
        """
        found = await self.row(who, id)
        run = _recognised(found)
        known_runs.refuse_missing(run, request.verb)
        _refuse_unused(run, request)
        if not found.is_open and not run.kind.closed_may_need_attention:
            raise WrongState(f"{id} has ended: there is nothing to {request.verb}")
        if versions is not None:
            require_version((await self._seen(found)).run, versions)
        await self._of(run).answer(
            who, run, replace(request, by=who.subject, organisation_id=found.organisation_id)
        )
        return await self._seen(await self.row(who, found.id))

    async def answer_all(
        self,
        who: Identity,
        wanted: RunFilter,
        request: AnswerRequest,
        *,
        dry_run: bool,
    ) -> Answered:
        """Give the same answer to all runs that need attention, of those that a filter finds.

        Args:
            who: The person.
            wanted: Which runs.
            request: The answer; its reason is kept with each run.
            dry_run: Only say which.

        Raises:
            Forbidden: The person has no role.
            TemporalUnavailable: Temporal does not answer.
        """
        limited = replace(wanted, needs_attention=True, limit=MOST_ANSWERED + 1)
        rows = await self.list(who, limited)
        views = await self._runs.newest([each.answers_at for each in rows[:MOST_ANSWERED]])
        found: list[RunRecord] = []
        left_out: list[str] = []
        for row in rows[:MOST_ANSWERED]:
            takes = known_runs.is_parked(views.get(row.answers_at)) or request.verb == _CANCEL
            offers = request.verb in _recognised(row).kind.verbs
            if takes and offers:
                found.append(row)
            else:
                left_out.append(row.id)
        seen = {row.id for row in rows}
        left_out += [each for each in wanted.ids or () if each not in seen]
        failed: dict[str, str] = {}
        if not dry_run:

            async def one(row: RunRecord) -> None:
                try:
                    await self.answer(who, row.id, request)
                except (ServiceError, PortError) as error:
                    failed[row.id] = str(error)

            await gather_bounded(found, one)
        return Answered(found, left_out, failed, len(rows) > MOST_ANSWERED)

    async def overview(self, who: Identity, span: Span) -> RunsOverview:
        """What runs have done within a span of time until now, and where open runs stand.

        Raises:
            Forbidden: The person has no role.
        """
        whole = span.step.total_seconds()
        # The present step is the last one.
        ends = (datetime.now(UTC).timestamp() // whole + 1) * whole
        begins = datetime.fromtimestamp(ends - whole * span.steps, UTC)
        return await self._rows.overview(visible_to(who), begins, span.step)

    async def report(self, who: Identity, id: str) -> AbstractAsyncContextManager[Report]:
        """The report of what was rejected.

        Raises:
            NotFound: There is no such run, or it has no report.
            ServiceError: The person may not, or it is not written yet.
        """
        run = _recognised(await self.row(who, id))
        known_runs.refuse_missing(run, "report")
        return self._of(run).report(who, run)

    async def changes(
        self,
        who: Identity,
        wanted: RunFilter,
        last_seen: int | None,
        stopping: Callable[[], bool],
    ) -> AsyncGenerator[Sequence[RunChange] | None]:
        """Begin to follow runs; their changes as they happen, those of one moment together.

        Args:
            who: The person.
            wanted: Of which runs.
            last_seen: Revision that the watcher has; None: begin now.
            stopping: Whether the process is about to end.

        Raises:
            Forbidden: The person has no role.
            InvalidRequest: There is no such pipeline, or no run can be in the state.
        """
        limited = _seen_by(who, wanted)
        at = await self._rows.revision() if last_seen is None else last_seen
        # What the database refuses is refused before the answer begins.
        await self._rows.changes(replace(limited, limit=1), at)
        return self._following(limited, at, stopping, lambda found: False)

    async def changes_of_one(
        self, who: Identity, id: str, last_seen: int | None, stopping: Callable[[], bool]
    ) -> AsyncGenerator[Sequence[RunChange] | None] | None:
        """Begin to follow one run until it has ended; None: it has, and the watcher knows.

        Args:
            who: The person.
            id: As for `row`.
            last_seen: Revision that the watcher has; None: begin with the run as it is.
            stopping: Whether the process is about to end.

        Raises:
            Forbidden: The person has no role.
            InvalidRequest: The text names no run, or several.
            NotFound: There is none of this id that the person may see.
        """
        run, at = await self.row(who, id), last_seen or 0
        limited = _seen_by(who, RunFilter(limit=MOST, id=run.id))
        news = await self._rows.changes(replace(limited, limit=1), at)
        if not run.is_open and not news:
            return None
        return self._following(
            limited, at, stopping, lambda found: bool(found) and not found[-1].run.is_open
        )

    async def _following(
        self,
        limited: RunFilter,
        at: int,
        stopping: Callable[[], bool],
        is_over: Callable[[Sequence[RunChange]], bool],
    ) -> AsyncGenerator[Sequence[RunChange] | None]:
        async def read() -> Sequence[RunChange]:
            return await self._rows.changes(limited, at)

        def revision(found: Sequence[RunChange]) -> int:
            return found[-1].revision if found else at

        following = watched(read, revision, is_over, last_seen=at, stopping=stopping, look=None)
        async for found in following:
            if found:
                at = revision(found)
            yield found

    def _of(self, run: Run) -> ServedRuns:
        return self._served.get(run.pipeline.name) or DefaultServedRuns(self._runs)


def _is_behind(run: RunRecord, wanted: RunFilter) -> bool:
    """Whether a run comes behind the page before, and within the time."""
    if wanted.until is not None and run.changed_at >= wanted.until:
        return False
    if wanted.before is None or run.changed_at != wanted.before:
        return wanted.before is None or (run.changed_at > wanted.before) == wanted.oldest_first
    return run.id > (wanted.behind or run.id)


def _recognised(row: RunRecord) -> Run:
    found = recognise(catalogue.run_groups(), row.answers_at)
    if found is None:
        raise NotFound(f"{row.id} belongs to no pipeline of this installation")
    return found


def _answers(row: RunRecord, view: RunView | None) -> Sequence[str]:
    known = recognise(catalogue.run_groups(), row.answers_at)
    if known is None or view is None:
        return ()
    if view.closed:
        needs = known.kind.closed_may_need_attention and row.needs_attention
        return tuple(known.kind.answers) if needs else ()
    every = (*known.kind.answers, *known.kind.events)
    return tuple(each for each in every if view.parked or each == _CANCEL)


def _needing_attention(row: RunRecord) -> RunRecord:
    """A run that waits as Temporal knows; not every pipeline can say so in its row."""
    state = RunState.NEEDS_ATTENTION if row.is_open else row.state
    return row.model_copy(update={"needs_attention": True, "state": state})


def _is_outdated(row: RunRecord, view: RunView) -> bool:
    """Whether a row is of an earlier run of the id, or of before an answer to an open run."""
    if row.is_open:
        return row.state is RunState.NEEDS_ATTENTION and not view.needs_attention
    return row.id == row.answers_at and row.changed_at < view.started_at


def _going_on(row: RunRecord) -> RunRecord:
    state = RunState.RUNNING
    now = {"state": state, "own_state": state.value, "needs_attention": False, "reason": None}
    again: dict[str, Any] = {} if row.is_open else {"counts": {}, "ended_at": None}
    return row.model_copy(update={**now, **again})


def _refuse_unused(run: Run, request: AnswerRequest) -> None:
    if request.correction is not None and request.verb not in run.pipeline.corrects:
        raise InvalidRequest(f"{request.verb} of {run.workflow_id} takes no corrected input")
    if request.changes and request.verb not in run.pipeline.changes:
        raise InvalidRequest(f"{request.verb} of {run.workflow_id} takes no changes")


def _seen_by(who: Identity, wanted: RunFilter) -> RunFilter:
    """A filter with what a person may see; one that can find nothing is a mistake."""
    groups = catalogue.run_groups()
    names = sorted(each.name for each in groups)
    if unknown := sorted(set(wanted.pipelines or ()) - set(names)):
        raise InvalidRequest(f"there is no pipeline {unknown[0]}; there are {', '.join(names)}")
    if wanted.state is not None:
        known_runs.refuse_unknown(groups, wanted.state)
    return replace(wanted, visible=visible_to(who))


def visible_to(who: Identity) -> Visible:
    """Which runs a person may see.

    Raises:
        Forbidden: The person has no role.
    """
    if not who.may_read:
        raise no_role()
    return who.sees
