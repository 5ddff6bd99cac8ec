"""Following one import from the queue to its end."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from adapters.ports import Unavailable
from contracts.imports import ImportResult, ImportStatus, workflow_id
from domain.imports.chunks import LoadMark, TaskKey
from workers.cli.errors import CommandError
from workers.cli.output import console, counts_text

if TYPE_CHECKING:
    from workers.services.imports.access import ImportAccess
    from workers.services.imports.runs import ImportRuns
    from workers.services.runs import RunView

QUIET_SECONDS = 10.0
"""Seconds without progress after which hints about what may be missing are shown."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0
"""Seconds between two looks: small documents are done in a moment, big ones take minutes."""


@dataclass(frozen=True)
class Parked:
    """The import waits for a person."""

    status: ImportStatus | None
    """None when no worker answers."""


Ending = ImportResult | Parked
"""Why following is over."""


class Screen(Protocol):
    """Shows how an import goes."""

    def state(self, description: str) -> None:
        """What is happening."""
        ...

    def rows(self, mark: LoadMark) -> None:
        """How far the rows have come."""
        ...

    def hint(self, sentence: str) -> None:
        """Something the person may have to do."""
        ...


class Follower:
    """Watches one import.

    Args:
        key: The import.
        runs: Temporal.
        resources: For progress marks and rejected messages.
        screen: Shows what is seen.
        earlier: Run id of an earlier run of the import, which is over.
        quiet_seconds: After how long without a sign of life hints are given.
        pauses: Seconds of the first and the longest pause between two looks.
    """

    def __init__(
        self,
        key: TaskKey,
        runs: "ImportRuns",
        resources: "ImportAccess",
        screen: Screen,
        *,
        earlier: str | None = None,
        quiet_seconds: float = QUIET_SECONDS,
        pauses: tuple[float, float] = (FIRST_PAUSE, LONGEST_PAUSE),
    ) -> None:
        self._key = key
        self._workflow_id = workflow_id(key.project_id, key.task_id)
        self._runs = runs
        self._resources = resources
        self._screen = screen
        self._earlier = earlier
        self._quiet_seconds = quiet_seconds
        self._pauses = pauses
        self._mark = LoadMark()
        self._last_sign = 0.0
        self._hinted = False

    async def follow(self) -> Ending:
        """Watch until the import is over or waits for a person.

        Raises:
            CommandError: The message was rejected.
            ServiceError: The run ended without a result, or Temporal does not answer.
        """
        self._sign_of_life()
        pause, longest = self._pauses
        while True:
            view = await self._runs.look(self._workflow_id)
            if view is not None and view.run_id == self._earlier:
                view = None
            if view is not None and view.closed:
                return await self._runs.result(self._workflow_id)
            if view is not None and view.parked:
                return Parked(await self._runs.status(self._workflow_id))
            await (self._wait_for_a_run() if view is None else self._watch(view))
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, longest)

    def _sign_of_life(self) -> None:
        self._last_sign = asyncio.get_running_loop().time()

    def _is_quiet(self) -> bool:
        quiet = asyncio.get_running_loop().time() - self._last_sign >= self._quiet_seconds
        return quiet and not self._hinted

    async def _wait_for_a_run(self) -> None:
        from workers.services.imports.submission import find_rejection

        self._screen.state("in the queue")
        if rejected := await find_rejection(self._resources, self._workflow_id):
            raise CommandError(
                f"the message was rejected: {rejected.reason}: {rejected.description}; "
                f"`docflow rejected show {rejected.id}` shows it"
            )
        if self._is_quiet():
            self._hinted = True
            self._screen.hint(
                f"No run {self._workflow_id} after {self._quiet_seconds:.0f} s. Is a bridge "
                "receiving from this queue (`docflow bridge service-bus`)? "
                "`docflow status` shows what is up."
            )

    async def _watch(self, view: "RunView") -> None:
        self._screen.state(view.status)
        try:
            mark = await self._resources.store.mark(self._key)
        except Unavailable:
            # The run does not depend on this progress mark: keep following it.
            return
        if mark != self._mark:
            self._mark = mark
            self._screen.rows(mark)
            self._sign_of_life()
        elif self._is_quiet():
            self._hinted = True
            if await self._runs.workers() == 0:
                self._screen.hint(
                    "The run has started and no worker polls its task queue: "
                    "start `docflow worker imports`."
                )


class ProgressScreen:
    """A progress bar on stderr; what the file still holds is not known, so it has no end."""

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        out = console(stderr=True)
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[rows]}", markup=False),
            TimeElapsedColumn(),
            console=out,
            transient=True,
            disable=not out.is_terminal,
        )
        self._task = self._progress.add_task("sent", total=None, rows="")

    @contextmanager
    def shown(self) -> Generator[None]:
        """Keep the bar on the screen."""
        with self._progress:
            yield

    def state(self, description: str) -> None:
        """What is happening."""
        self._progress.update(self._task, description=description)

    def rows(self, mark: LoadMark) -> None:
        """How far the rows have come."""
        self._progress.update(
            self._task, rows=f"{mark.cursor:,} rows read: {counts_text(mark.counts)}"
        )

    def hint(self, sentence: str) -> None:
        """Something the person may have to do."""
        self._progress.console.print(sentence)
