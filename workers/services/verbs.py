"""What can be done to a run of any pipeline, by the id that a person knows it by.

The register of a pipeline names its `RunVerbs`; whatever handles runs of all pipelines asks this
module and names none.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from workers import catalogue
from workers.pipelines.base import Pipeline, load
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
    """What can be done to the runs of one pipeline; runs are named by their workflow ids."""

    pipeline: str
    naming: str
    """How a person may write an id."""
    states: Sequence[str]
    """That a list can be filtered by."""
    filters: frozenset[str]
    """Filters of a list that this pipeline has, beyond state."""
    corrects: frozenset[str]
    """Verbs that take a corrected message."""

    def recognises(self, workflow_id: str) -> bool:
        """Whether a text is the full workflow id of a run of this pipeline."""
        ...

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[str] | None:
        """The workflow ids that a short form names; None: it is not one of this pipeline."""
        ...

    def name(self, workflow_id: str) -> str:
        """How people name a run."""
        ...

    def offered(self, workflow_id: str) -> Sequence[str]:
        """The verbs that a run of this id offers, `show` apart."""
        ...

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Runs, the newest change first."""
        ...

    async def answer(
        self, environment: Mapping[str, str], workflow_id: str, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send an answer and wait until it is applied; what it did, for programs.

        Raises:
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        ...

    def report(
        self, environment: Mapping[str, str], workflow_id: str
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


async def find(text: str, environment: Mapping[str, str]) -> tuple[RunVerbs, str]:
    """The run that a person means: a full workflow id wins over every short form.

    Returns:
        The verbs of its pipeline, and its workflow id.

    Raises:
        InvalidRequest: It has the form of no id, or fits several runs.
        NotFound: It has the form of one, and there is no such run.
    """
    text = text.strip()
    every = [of(pipeline) for pipeline in catalogue.PIPELINES]
    for verbs in every:
        if verbs.recognises(text):
            return verbs, text
    found: list[tuple[RunVerbs, str]] = []
    is_form = False
    for verbs in every:
        ids = await verbs.resolve(text, environment)
        is_form = is_form or ids is not None
        found += [(verbs, id) for id in ids or ()]
    if len(found) == 1:
        return found[0]
    if found:
        candidates = ", ".join(id for _, id in found)
        raise InvalidRequest(f"{text} names several runs: write one of {candidates}")
    naming = "; ".join(verbs.naming for verbs in every)
    if is_form:
        raise NotFound(
            f"there is no run {text}: `docflow list` shows what there is; one that has just begun "
            "is known by its workflow id only"
        )
    raise InvalidRequest(f"{text!r} names no run; write {naming}")


def refuse_missing(verbs: RunVerbs, workflow_id: str, verb: str) -> None:
    """Refuse a verb that a run does not offer.

    Raises:
        InvalidRequest: With what is offered.
    """
    offered = verbs.offered(workflow_id)
    if verb not in offered:
        listed = ", ".join(offered) or "nothing but show"
        raise InvalidRequest(f"{verbs.name(workflow_id)} has no {verb}; offered: {listed}")
