"""The runs of all pipelines by the ids that people know them by, and what can be done to each.

Whatever handles runs of all pipelines asks this module, and names none of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from contracts.dependencies import WAITING
from contracts.notices import DELIVERY_PREFIX
from workers import catalogue
from workers.pipelines.base import Run, RunGroup, load, recognise
from workers.services.errors import InvalidRequest, NotFound
from workers.services.registered_verbs import RegisteredVerbs, list_in_temporal
from workers.services.verbs import Filters, RunEntry, RunVerbs

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
    """
    verbs = of(pipeline)
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
    found = await list_in_temporal(pipeline, environment, filters, verbs.name, only_open=True)
    return [*entries, *(entry for entry in found if entry.workflow_id not in known)]


async def with_waits(
    pipeline: RunGroup, environment: Mapping[str, str], entries: Sequence[RunEntry]
) -> Sequence[RunEntry]:
    """Entries from rows, with the state `waiting` where Temporal says so.

    A run that waits for a dependency writes no row: that might be what it waits for.

    Raises:
        ServiceError: Temporal does not answer.
    """
    if not any(entry.is_open for entry in entries):
        return entries
    filters = Filters(limit=_MOST_WAITING, state=WAITING)
    name = of(pipeline).name
    found = await list_in_temporal(pipeline, environment, filters, name, only_open=True)
    waiting = {entry.workflow_id for entry in found}
    return [
        replace(entry, state=WAITING, row=_waiting(entry.row)) if is_waiting else entry
        for entry in entries
        for is_waiting in [entry.is_open and entry.workflow_id in waiting]
    ]


def _waiting(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**row, "state": WAITING} if "state" in row else row


def prefixes() -> frozenset[str]:
    """What workflow ids begin with, up to the first slash."""
    kinds = (kind for group in catalogue.run_groups() for kind in group.runs)
    return frozenset((DELIVERY_PREFIX, *(kind.prefix for kind in kinds)))


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
