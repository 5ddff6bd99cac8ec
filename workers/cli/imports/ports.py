"""What commands ask of the cli, so that tests can put something else in its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from adapters.ports import Blobs, RejectedMessages
from contracts.imports import (
    Answer,
    DocumentType,
    ImportResult,
    ImportState,
    ImportStatus,
    Retry,
)
from domain.imports.chunks import LoadMark, TaskKey

if TYPE_CHECKING:
    from adapters.database.imports.views import ImportTaskRow


class Tasks(Protocol):
    """The status rows of imports."""

    async def get(self, project_id: str, task_id: str) -> "ImportTaskRow | None":
        """One import."""
        ...

    async def find(self, task_id: str) -> "Sequence[ImportTaskRow]":
        """The imports of this task id, at most one per project."""
        ...

    async def list(
        self,
        limit: int,
        state: ImportState | None = None,
        document_type: DocumentType | None = None,
        project_id: str | None = None,
    ) -> "Sequence[ImportTaskRow]":
        """The newest first."""
        ...


class Marks(Protocol):
    """How far loads have come."""

    async def mark(self, key: TaskKey) -> LoadMark:
        """The progress mark of one import."""
        ...


class Resources(Protocol):
    """The adapters that commands use."""

    @property
    def tasks(self) -> Tasks:
        """Status rows."""
        ...

    @property
    def store(self) -> Marks:
        """Progress marks."""
        ...

    @property
    def rejected(self) -> RejectedMessages:
        """Messages that were turned away."""
        ...

    @property
    def blobs(self) -> Blobs:
        """Documents and reports."""
        ...


@dataclass(frozen=True)
class QueueDepth:
    """What was seen in a queue."""

    waiting: int
    """Messages that are in the queue, those under a lock included."""
    dead_letters: int
    at_most: int
    """Nobody looked further than this."""


class ImportQueue(Protocol):
    """The queue that import messages go to."""

    async def send(self, body: bytes, message_id: str) -> None:
        """Send one message; it is in the queue when this returns."""
        ...

    async def depth(self, at_most: int) -> QueueDepth:
        """Look at what is in the queue without taking any."""
        ...


@dataclass(frozen=True)
class RunView:
    """What Temporal knows of a run without asking a worker."""

    workflow_id: str
    run_id: str
    status: str
    """Temporal's own: `running`, `completed`, `failed`, `canceled`, `terminated`, `timed_out`."""
    closed: bool
    parked: bool
    """It waits for a person."""
    link: str | None
    """Its page in the Temporal UI."""


@dataclass(frozen=True)
class PipelineView:
    """What Temporal knows of a pipeline."""

    workers: int
    """How many poll its task queue."""
    open: int
    """Runs that have not ended."""
    waiting: int
    """Those of them that wait for a person."""


class Runs(Protocol):
    """Import runs in Temporal."""

    @property
    def place(self) -> str:
        """Where we look, for people."""
        ...

    def link(self, workflow_id: str) -> str | None:
        """The run's page in the Temporal UI; None when nobody said where that is."""
        ...

    async def look(self, workflow_id: str) -> RunView | None:
        """One run, the newest of its id; None: there is none."""
        ...

    async def status(self, workflow_id: str) -> ImportStatus | None:
        """Where a run stands, from its worker; None when there is no answer."""
        ...

    async def result(self, workflow_id: str) -> ImportResult:
        """The result of a closed run, failed ones included."""
        ...

    async def answer(self, workflow_id: str, name: str, answer: Retry | Answer) -> ImportStatus:
        """Send an update (`retry`, `skip`, `fail`, `cancel`) and wait until it is taken."""
        ...

    async def workers(self) -> int:
        """How many workers poll the task queue."""
        ...

    async def count(self, state: ImportState) -> int:
        """How many imports of this state Temporal holds."""
        ...

    async def pipeline(self, name: str, task_queue: str) -> PipelineView:
        """Workers and open runs of another pipeline."""
        ...
