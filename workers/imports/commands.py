"""How commands show imports, what they would do, and imported rows again."""

import asyncio
import shutil
from collections.abc import Generator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    contextmanager,
)
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import typer

from adapters.ports.errors import Unavailable
from workers.shared.cli.context import CliContext
from workers.shared.cli.errors import CommandError, ExitCode, Failure, attempt
from workers.shared.cli.output import (
    console,
    counts_text,
    output_file,
    print_json,
    problems_table,
    table,
    text,
)
from workers.shared.register import Check
from workflows.imports.messages import ImportMessage, workflow_id
from workflows.imports.runs import (
    ImportResult,
    ImportStatus,
    LoadMark,
    TaskKey,
)

if TYPE_CHECKING:
    from rich.table import Table

    from activities.imports.views import SqlImportTasks
    from workers.imports.access import ImportAccess
    from workers.imports.rehearsal import Rehearsal
    from workers.imports.runs import ImportRuns
    from workers.shared.services.runs import RunView
    from workers.shared.services.service_bus import ServiceBusQueue


def open_imports(cli: CliContext) -> "AbstractAsyncContextManager[ImportAccess]":
    """Status rows, progress marks, rejected messages and documents.

    Raises:
        SettingsError: A setting is missing.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from workers.imports import access

    return access.open_imports(cli.environment)


def open_tasks(cli: CliContext) -> "AbstractAsyncContextManager[SqlImportTasks]":
    """Status rows.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from workers.imports import access

    return access.open_tasks(cli.environment)


def open_queue(cli: CliContext) -> "AbstractAsyncContextManager[ServiceBusQueue]":
    """The Service Bus queue of import messages.

    Raises:
        SettingsError: A setting is missing.
    """
    from workers.imports.settings import QueueSettings
    from workers.shared.services import service_bus

    return service_bus.open_queue(QueueSettings.read(cli.environment))


async def open_runs(cli: CliContext) -> "ImportRuns":
    """Import runs in Temporal.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.imports import runs

    return await runs.open_runs(cli.environment)


COUNTS = ("created", "updated", "unchanged", "rejected", "deleted", "flagged")


async def dry_run(
    cli: CliContext,
    work: Sequence[tuple[ImportMessage, Path | None]],
    report: Path | None,
    *,
    as_json: bool,
) -> None:
    """Try imports on copies of the rows that they meet, and show a line for each.

    Each is tried by itself: what an earlier one would write, a later one does not find.

    Raises:
        typer.Exit: One of them would wait for a person.
    """
    from workers.imports.rehearsal import rehearsed
    from workers.shared.settings.targets import TargetSettings

    urls = TargetSettings.read(cli.environment).databases
    made = table("document", *COUNTS, "problems", "what would happen", numbers=[*COUNTS])
    parks = False
    shown: list[dict[str, object]] = []
    async with cli.tables() as database:
        for message, file in work:
            async with rehearsed(database, message, file, urls) as found:
                parks = parks or found.parks is not None
                shown.append(_as_json(message, file, found))
                _add(made, message, file, found)
                if report is not None and found.report is not None:
                    with output_file(report, force=False) as target:
                        shutil.copyfile(found.report, target)
                if not as_json and len(work) == 1 and found.outcome.problems:
                    outcome = found.outcome
                    console().print(problems_table(outcome.problems, outcome.problem_count))
    if as_json:
        print_json(shown)
    else:
        console().print(made)
        typer.echo("nothing was written" + (f"; report: {report}" if report else ""))
    if parks:
        raise typer.Exit(ExitCode.PARKED)


def _add(made: "Table", message: ImportMessage, file: Path | None, found: "Rehearsal") -> None:
    outcome = found.outcome
    counts = outcome.counts.model_dump()
    end = f"parks: {found.parks}" if found.parks else outcome.note or "completed"
    made.add_row(
        text(file.name if file else message.document_type),
        *(text(f"{counts[name]:,}") for name in COUNTS),
        text(f"{outcome.problem_count:,}"),
        text(end),
    )


def _as_json(message: ImportMessage, file: Path | None, found: "Rehearsal") -> dict[str, object]:
    outcome = found.outcome
    return {
        "document_type": message.document_type,
        "file": None if file is None else str(file),
        "counts": outcome.counts.model_dump(),
        "problem_count": outcome.problem_count,
        "problems": [each.model_dump(mode="json") for each in outcome.problems],
        "note": outcome.note,
        "parks": found.parks,
        "question": outcome.question and outcome.question.model_dump(),
    }


MESSAGES_PEEKED: Final = 100


async def checks(context: CliContext) -> Sequence[Check]:
    """The Service Bus queue."""

    async def depth() -> str:
        async with AsyncExitStack() as stack:
            queue = await stack.enter_async_context(open_queue(context))
            depth = await queue.depth(MESSAGES_PEEKED)
        waiting, dead = (
            f"{number}{' or more' if number == depth.at_most else ''}"
            for number in (depth.waiting, depth.dead_letters)
        )
        return f"{waiting} waiting, {dead} in the dead letter queue"

    found = await attempt(depth())
    if isinstance(found, Failure):
        return [Check("queue", False, found.reason)]
    return [Check("queue", True, found)]


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
        from workers.imports.runs import find_rejection

        self._screen.state("in the queue")
        if rejected := await find_rejection(self._resources, self._workflow_id):
            raise CommandError(
                f"the message was rejected: {rejected.reason}: {rejected.description}; "
                f"`docflow message show {rejected.id}` shows it"
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
