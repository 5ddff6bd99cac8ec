"""What a teller of the story can do, whatever door of docflow they stand at."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

Problem = tuple[int, str, str]
"""Line, column and reason."""


class Teller(Protocol):
    """A person, or a program, at one door of docflow.

    Runs are called by their workflow ids, everywhere.
    """

    async def state(self, run: str) -> str:
        """Where a run stands, as its pipeline says it, in lower case."""
        ...

    async def retry(self, run: str) -> None:
        """Answer a parked run: try again."""
        ...

    async def send_document(self, file: Path, message: Mapping[str, str]) -> str:
        """Have a document imported; its run."""
        ...

    async def problems(self, run: str) -> Sequence[Problem]:
        """What is wrong with a document."""
        ...

    async def report(self, run: str) -> Path:
        """Fetch the spreadsheet of the rows that did not go in."""
        ...

    async def upload(self, file: Path, import_type: str, context: int) -> str:
        """Have a spreadsheet imported that asks a person; its run."""
        ...

    async def open_columns(self, run: str) -> Mapping[str, int]:
        """Columns without a meaning, and their numbers."""
        ...

    async def decide_column(self, run: str, column: int, field: str) -> None:
        """Say what a column means."""
        ...

    async def open_values(self, run: str) -> Mapping[str, int]:
        """Values without a meaning, and their numbers."""
        ...

    async def decide_value(self, run: str, value: int, field: str, meaning: str) -> None:
        """Say which row of another table a value means, by the name of that row."""
        ...

    async def confirm(self, run: str, what: str) -> None:
        """Confirm the columns or the values."""
        ...

    async def undo(self, run: str) -> None:
        """Begin to take an upload back."""
        ...

    async def undo_state(self, run: str) -> str:
        """Where that stands."""
        ...

    async def start_batch(self, case: int) -> None:
        """Start batch 1 of a case."""
        ...

    async def finish_batch(self, case: int) -> None:
        """Report that all documents were sent."""
        ...

    async def end_batch(self, case: int) -> None:
        """Report that what follows the loading is done."""
        ...

    async def redrive_batch(self, case: int, *, with_failed: bool) -> None:
        """Have the dead letters tried again, or those too that are recorded as failed."""
        ...

    async def phase(self, case: int) -> str:
        """Where the run of the batch stands."""
        ...

    async def failed_messages(self, case: int) -> Mapping[str, str]:
        """Documents that are not loaded, and why."""
        ...

    async def resources(self, case: int) -> str:
        """What became of all that was built for the batch, in a word."""
        ...

    async def start_job(self, job_type: str, parameters: Mapping[str, Any], project: str) -> str:
        """Start a job; its run."""
        ...

    async def restart_job(self, run: str) -> None:
        """Begin another attempt at the stage that failed."""
        ...

    async def send_event(self, event: Mapping[str, Any]) -> str:
        """Send an event; its run."""
        ...
