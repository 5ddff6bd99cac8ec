"""The runs of all pipelines by the ids that people know them by, and what can be done to each.

Whatever handles runs of all pipelines asks this module, and names none of them.
"""

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Final

from workers import catalogue
from workers.shared.register import Run, RunGroup, load, recognise
from workers.shared.services.errors import InvalidRequest, NotFound, TemporalUnavailable
from workers.shared.services.verbs import (
    Filters,
    RegisteredVerbs,
    RunEntry,
    RunVerbs,
    list_in_temporal,
)
from workflows.shared.dependencies import WAITING
from workflows.shared.notices import DELIVERY_PREFIX
from workflows.shared.records import REJECTION_PREFIX, TERMINATED

_PARKED: Final = "parked"
_MOST_WAITING: Final = 10_000
"""Runs of one pipeline that are looked for; the limit of a list."""


def of(pipeline: RunGroup) -> RunVerbs:
    """The verbs of one pipeline, loaded when they are asked for."""
    return RegisteredVerbs(pipeline) if pipeline.verbs is None else load(pipeline.verbs)


def states(pipeline: RunGroup) -> Sequence[str]:
    """The states that runs of a pipeline can be listed by, each as it is spelled there."""
    return tuple(dict.fromkeys((*of(pipeline).states, *pipeline.states)))


async def list_runs(
    pipeline: RunGroup, environment: Mapping[str, str], filters: Filters
) -> Sequence[RunEntry]:
    """Runs of a pipeline, the newest change first; a state counts in upper and lower case.

    Those in a state that only the register has, as `parked`, are the open runs that Temporal knows.
    It knows as well which of them wait for a person; rows say why.
    """
    verbs = of(pipeline)
    if filters.needs_attention:
        return await _needing_attention(pipeline, environment, filters)
    if filters.state is None:
        return await verbs.list(environment, filters)
    wanted = filters.state.lower()
    own = [state for state in verbs.states if state.lower() == wanted]
    entries = [e for s in own for e in await verbs.list(environment, replace(filters, state=s))]
    if own and wanted not in (WAITING, _PARKED):
        return entries
    # A row may not have been written, and some pipelines call it waiting as well when a run's turn
    # has not come.
    spelled = next(state for state in (*pipeline.states, WAITING) if state.lower() == wanted)
    filters = replace(filters, state=spelled)
    known = {entry.workflow_id for entry in entries}
    found = await list_in_temporal(pipeline, environment, filters, verbs.name, execution="Running")
    return [*entries, *(entry for entry in found if entry.workflow_id not in known)]


async def _needing_attention(
    pipeline: RunGroup, environment: Mapping[str, str], filters: Filters
) -> Sequence[RunEntry]:
    verbs = of(pipeline)
    wanted = (filters.state or "").lower()
    spelled = next((state for state in pipeline.states if state.lower() == wanted), filters.state)
    filters = replace(filters, state=spelled)
    if isinstance(verbs, RegisteredVerbs):
        return await verbs.list(environment, filters)
    found = await list_in_temporal(pipeline, environment, filters, verbs.name)
    parked = next((state for state in verbs.states if state.lower() == _PARKED), None)
    if not found or parked is None:
        return await _explained(pipeline, environment, found)
    of_rows = replace(filters, limit=_MOST_WAITING, state=parked, needs_attention=False)
    rows = {entry.workflow_id: entry for entry in await verbs.list(environment, of_rows)}
    return [rows.get(entry.workflow_id, entry) for entry in found]


async def _explained(
    pipeline: RunGroup, environment: Mapping[str, str], entries: Sequence[RunEntry]
) -> Sequence[RunEntry]:
    """Entries of a pipeline whose rows do not say why a run waits, with what the runs say."""
    from workers.shared.services.inbox import reason_of
    from workers.shared.services.runs import open_runs

    runs, notes = await open_runs(environment), dict[str, str]()
    # No worker may answer: what waits is listed all the same.
    with suppress(TemporalUnavailable):
        for entry in entries:
            run = None if entry.note else pipeline.recognise(entry.workflow_id)
            status = run and run.kind.status
            if run is not None and status is not None and "reason" in status.model_fields:
                notes[entry.workflow_id] = await reason_of(runs, run)
    return [
        replace(each, note=note, row={**each.row, "reason": note})
        if (note := notes.get(each.workflow_id))
        else each
        for each in entries
    ]


async def as_in_temporal(
    pipeline: RunGroup,
    environment: Mapping[str, str],
    entries: Sequence[RunEntry],
    filters: Filters,
) -> Sequence[RunEntry]:
    """Entries from rows in the states that Temporal knows; those with another state left out.

    A run that waits for a dependency writes no row: that might be what it waits for. One that is
    parked may not have been able to, and one that was terminated is not: until the sweep its row
    says what it was.

    Raises:
        ServiceError: Temporal does not answer.
    """
    known = {entry.workflow_id for entry in entries if entry.is_open}
    states: dict[str, str] = {}
    notes: dict[str, str] = {}
    found: Sequence[RunEntry] = ()
    wanted = (filters.state or "").lower()
    if known or wanted == TERMINATED:
        found = await _terminated(pipeline, environment, filters)
        states = await _confirmed(environment, found, known, anyway=wanted == TERMINATED)
    if known:
        others = await _not_shown_by_rows(pipeline, environment)
        states = {**{id: state for id, (state, _) in others.items()}, **states}
        notes = {id: note for id, (_, note) in others.items() if note is not None}
    seen = [
        _in_state(entry, state, notes.get(entry.workflow_id))
        if entry.is_open and state is not None
        else entry
        for entry in entries
        for state in [states.get(entry.workflow_id)]
    ]
    if not wanted:
        return seen
    if wanted == TERMINATED:
        listed = {entry.workflow_id for entry in entries}
        seen += [
            entry
            for entry in found
            if entry.workflow_id in states and entry.workflow_id not in listed
        ]
    return [entry for entry in seen if entry.state.lower() == wanted]


async def _not_shown_by_rows(
    pipeline: RunGroup, environment: Mapping[str, str]
) -> Mapping[str, tuple[str, str | None]]:
    """Open runs that wait, or are parked where rows know that state, to state and reason."""
    verbs = of(pipeline)
    states = [WAITING, *(state for state in verbs.states if state == _PARKED)]
    return {
        entry.workflow_id: (state, entry.note)
        for state in states
        for entry in await list_in_temporal(
            pipeline,
            environment,
            Filters(limit=_MOST_WAITING, state=state),
            verbs.name,
            execution="Running",
        )
    }


async def _terminated(
    pipeline: RunGroup, environment: Mapping[str, str], filters: Filters
) -> Sequence[RunEntry]:
    """Runs that have states and were terminated; their ids may have run again since."""
    verbs = of(pipeline)
    spelled = next((state for state in verbs.states if state.lower() == TERMINATED), TERMINATED)
    filters = replace(filters, limit=_MOST_WAITING, state=None)
    found = await list_in_temporal(
        pipeline, environment, filters, verbs.name, execution="Terminated"
    )
    return [
        replace(entry, state=spelled)
        for entry in {entry.workflow_id: entry for entry in found}.values()
        if (run := pipeline.recognise(entry.workflow_id)) is not None and run.kind.states
    ]


async def _confirmed(
    environment: Mapping[str, str], found: Sequence[RunEntry], known: Set[str], *, anyway: bool
) -> dict[str, str]:
    """Those whose newest run was terminated, to their state.

    Args:
        environment: Settings.
        found: Runs that were terminated.
        known: Ids of rows that are open.
        anyway: Look also at those whose row is not known.
    """
    from workers.shared.services.inbox import gathered
    from workers.shared.services.runs import open_runs

    asked = [entry for entry in found if anyway or entry.workflow_id in known]
    if not asked:
        return {}
    runs = await open_runs(environment)
    views = await gathered(asked, lambda entry: runs.look(entry.workflow_id))
    return {
        entry.workflow_id: entry.state
        for entry, view in zip(asked, views, strict=True)
        if view is not None and view.status == TERMINATED
    }


def _in_state(entry: RunEntry, state: str, note: str | None) -> RunEntry:
    row = {**entry.row, "state": state} if "state" in entry.row else entry.row
    return replace(entry, state=state, row=row, note=note or entry.note)


def prefixes() -> frozenset[str]:
    """What workflow ids begin with, up to the first slash."""
    kinds = (kind for group in catalogue.run_groups() for kind in group.runs)
    return frozenset((DELIVERY_PREFIX, REJECTION_PREFIX, *(kind.prefix for kind in kinds)))


async def find(text: str, environment: Mapping[str, str]) -> tuple[RunVerbs, Run]:
    """The run that a person means: a full workflow id wins over every short form.

    Returns:
        The verbs of its pipeline, and the run.

    Raises:
        InvalidRequest: It has the form of no id, or fits several runs.
        NotFound: It has the form of one, and there is no such run.
    """
    text = text.strip()
    if (run := recognise(catalogue.run_groups(), text)) is not None:
        return of(run.pipeline), run
    every = [of(group) for group in catalogue.run_groups()]
    found: list[Run] = []
    is_form = False
    for verbs in every:
        runs = await verbs.resolve(text, environment)
        is_form = is_form or runs is not None
        found += runs or ()
    if len(found) == 1:
        return of(found[0].pipeline), found[0]
    if found:
        candidates = ", ".join(run.workflow_id for run in found)
        raise InvalidRequest(f"{text} names several runs: write one of {candidates}")
    naming = "; ".join(verbs.naming for verbs in every)
    if is_form:
        raise NotFound(
            f"there is no run {text}: `docflow list` shows what there is; one that has just begun "
            "is known by its workflow id only"
        )
    raise InvalidRequest(f"{text!r} names no run; write {naming}")


def refuse_reason(verbs: RunVerbs, run: Run, verb: str) -> None:
    """Refuse a reason where the answer has no place for it.

    Raises:
        InvalidRequest: It has none.
    """
    contract = {**run.kind.answers, **run.kind.events}[verb]
    if "reason" not in contract.model_fields:
        raise InvalidRequest(f"{verb} of {verbs.name(run)} keeps no reason; leave it out")


def refuse_missing(verbs: RunVerbs, run: Run, verb: str) -> None:
    """Refuse a verb that a run does not offer.

    Raises:
        InvalidRequest: With what is offered.
    """
    offered = run.kind.verbs
    if verb not in offered:
        listed = ", ".join(offered) or "nothing but show"
        raise InvalidRequest(f"{verbs.name(run)} has no {verb}; offered: {listed}")
