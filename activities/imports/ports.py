"""Tables of the imports pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass

from workflows.imports.messages import AnyTableMessage
from workflows.imports.runs import (
    ImportPlan,
    ImportState,
    RowChunk,
)
from workflows.imports.types import TableSpec


@dataclass(frozen=True, slots=True)
class EarlierImport:
    """The import that has the work of another one."""

    state: ImportState
    task_id: str
    digest: str | None = None
    """Of the message that began it; None: a release that kept none began it."""
    by_this_run: bool = False
    """The run that asks has done it: a worker died before Temporal knew."""


@dataclass(frozen=True, slots=True)
class WholeImport:
    """A table import that one transaction writes and records as completed.

    Attributes:
        message: The message.
        plan: The decisions of the run.
        workflow_id: Who does it.
        guard: See `ImportStore.begin`, and so the next two.
        digest: Of the message that started the run.
        run_id: Of the run in Temporal.
        spec: What the table holds.
        chunk: All rows of the document; none of them was rejected.
        note: Of the outcome.
    """

    message: AnyTableMessage
    plan: ImportPlan
    workflow_id: str
    guard: str | None
    digest: str | None
    run_id: str | None
    spec: TableSpec
    chunk: RowChunk
    note: str | None = None


@dataclass(frozen=True, slots=True)
class ScheduleClaim:
    """The schedule that a file is about."""

    short_name: str
    """As the file has it."""
    schedule_id: str
    known: Mapping[str, str]
    """The names of the project's schedules, to their ids, by which it was found."""


@dataclass(frozen=True, slots=True)
class HeldBy:
    """Another task that is loading what this one is about."""

    task_id: str
