"""What can be done to a run of any pipeline, by the id that a person knows it by.

The register of a pipeline names its `RunVerbs`; whatever handles runs of all pipelines asks this
module and names none.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from workers import catalogue
from workers.pipelines.base import Pipeline, Run, load, recognise
from workers.services.errors import InvalidRequest, NotFound


@dataclass(frozen=True)
class Filters:
    """Which runs are listed."""

    limit: int
    """At most so many of each pipeline."""
    state: str | None = None
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    """Filters that not every pipeline has, by name: `type`, `project`."""


@dataclass(frozen=True)
class RunEntry:
    """A run in a list."""

    workflow_id: str
    name: str
    """How people name it."""
    pipeline: str
    type: str
    state: str
    since: datetime
    """When it last changed."""
    note: str | None = None
    """What to know about it."""
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """Numbers that only this pipeline shows."""
    row: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """All that is known of it, for programs."""


@dataclass(frozen=True)
class AnswerRequest:
    """A person's answer to a run."""

    verb: str
    by: str | None = None
    reason: str | None = None
    correction: bytes | None = None
    """A corrected message, as its sender would send it."""


@dataclass(frozen=True)
class Report:
    """The report of a run, not yet fetched."""

    filename: str
    download: Callable[[Path], Awaitable[object]]
    sentence: str
    """What to do with it."""


class RunVerbs(Protocol):
    """What can be done to the runs of one pipeline; its register says which verbs they offer."""

    pipeline: str
    naming: str
    """How a person may write an id."""
    states: Sequence[str]
    """That its list knows; Temporal is asked for runs in any other of the register."""
    filters: frozenset[str]
    """Filters of a list that this pipeline has, beyond state."""
    corrects: frozenset[str]
    """Verbs that take a corrected message."""

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """The runs that a short form names; None: it is not one of this pipeline.

        Raises:
            InvalidRequest: It could be taken for the id of another run.
        """
        ...

    def name(self, run: Run) -> str:
        """How people name a run."""
        ...

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Runs, the newest change first."""
        ...

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send an answer and wait until it is applied; what it did, for programs.

        Raises:
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        ...

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """The report of what was rejected.

        Raises:
            ServiceError: There is none; the message says why.
        """
        ...


def of(pipeline: Pipeline) -> RunVerbs:
    """The verbs of one pipeline, loaded when they are asked for."""
    from workers.services.registered_verbs import RegisteredVerbs

    return RegisteredVerbs(pipeline) if pipeline.verbs is None else load(pipeline.verbs)


def states(pipeline: Pipeline) -> Sequence[str]:
    """The states that runs of a pipeline can be listed by, each as it is spelled there."""
    return tuple(dict.fromkeys((*of(pipeline).states, *pipeline.states)))


async def list_runs(
    pipeline: Pipeline, environment: Mapping[str, str], filters: Filters
) -> Sequence[RunEntry]:
    """Runs of a pipeline, the newest change first; a state counts in upper and lower case.

    Those in a state that only the register has, as `parked`, are the open runs that Temporal knows.
    """
    verbs = of(pipeline)
    if filters.state is None:
        return await verbs.list(environment, filters)
    wanted = filters.state.lower()
    for own in verbs.states:
        if own.lower() == wanted:
            return await verbs.list(environment, replace(filters, state=own))
    from workers.services.registered_verbs import list_in_temporal

    spelled = next(state for state in pipeline.states if state.lower() == wanted)
    filters = replace(filters, state=spelled)
    return await list_in_temporal(pipeline, environment, filters, verbs.name, only_open=True)


def prefixes() -> frozenset[str]:
    """What workflow ids begin with, up to the first slash."""
    return frozenset(kind.prefix for pipeline in catalogue.PIPELINES for kind in pipeline.runs)


async def find(text: str, environment: Mapping[str, str]) -> tuple[RunVerbs, Run]:
    """The run that a person means: a full workflow id wins over every short form.

    Returns:
        The verbs of its pipeline, and the run.

    Raises:
        InvalidRequest: It has the form of no id, or fits several runs.
        NotFound: It has the form of one, and there is no such run.
    """
    text = text.strip()
    if (run := recognise(catalogue.PIPELINES, text)) is not None:
        return of(run.pipeline), run
    every = [of(pipeline) for pipeline in catalogue.PIPELINES]
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
