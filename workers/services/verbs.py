"""What can be done to the runs of a pipeline; its register names its `RunVerbs`."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from workers.pipelines.base import Run


@dataclass(frozen=True)
class Filters:
    """Which runs are listed."""

    limit: int
    """At most so many of each pipeline."""
    state: str | None = None
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    """Filters that not every pipeline has, by name: `type`, `project`."""
    needs_attention: bool = False
    """Only runs that wait for a person, as the inbox shows them."""


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
    is_open: bool = False
    """Its row says that it has not ended; Temporal knows whether it waits for a dependency."""
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
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of its message that get another value."""
    file: Path | None = None
    """A corrected document."""


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
    changes: frozenset[str]
    """Verbs that take a corrected document, and new values for fields of its message."""

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
