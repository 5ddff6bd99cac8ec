"""`docflow status`: what is up, and what waits for a person."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer

from contracts import batches, spreadsheets
from contracts.imports import ImportState
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import ExitCode, Failure, attempt, run
from workers.cli.imports.ids import name_of
from workers.cli.imports.views import row_as_json
from workers.cli.output import (
    JsonOption,
    console,
    moment,
    print_json,
    state_text,
    table,
    text,
)

if TYPE_CHECKING:
    from adapters.database.imports.views import ImportTaskRow
    from workers.services.imports.runs import ImportRuns

app = typer.Typer(rich_markup_mode=None)

STATES = (
    ImportState.PARKED,
    ImportState.RUNNING,
    ImportState.FAILED,
    ImportState.CANCELLED,
    ImportState.SKIPPED,
    ImportState.COMPLETED,
)
"""In the order of who needs attention."""
OTHERS = {"spreadsheets": spreadsheets.TASK_QUEUE, "batches": batches.TASK_QUEUE}
"""Pipelines that an installation may do without, and their task queues."""
PARKED_SHOWN = 10
MESSAGES_PEEKED = 100


@dataclass(frozen=True)
class Check:
    """One part of the installation."""

    part: str
    up: bool
    says: str


@app.command()
def status(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show what is up and what waits for you.

    Exit code 1 when something is down.

    \b
    Examples:
      docflow status
      docflow status --json
    """
    run(_status(cli_context(context), as_json=as_json))


@dataclass(frozen=True)
class _Temporal:
    checks: list[Check]
    counts: dict[ImportState, int]


@dataclass(frozen=True)
class _Database:
    check: Check
    parked: "list[ImportTaskRow]"


async def _status(cli: CliContext, *, as_json: bool) -> None:
    temporal, database, queue = await asyncio.gather(
        _ask_temporal(cli), _ask_database(cli), _ask_queue(cli)
    )
    checks = [*temporal.checks, database.check, queue]
    if as_json:
        print_json(
            {
                "checks": [asdict(check) for check in checks],
                "counts": temporal.counts,
                "parked": [row_as_json(row) for row in database.parked],
            }
        )
    else:
        _show(checks, temporal.counts, database.parked)
    if not all(check.up for check in checks):
        raise typer.Exit(ExitCode.FAILED)


async def _ask_temporal(cli: CliContext) -> _Temporal:
    runs = await attempt(cli.runs())
    if isinstance(runs, Failure):
        return _Temporal([Check("Temporal", False, runs.reason)], {})
    up = Check("Temporal", True, runs.place)
    workers, counts, others = await asyncio.gather(
        attempt(runs.workers()),
        attempt(_counts(runs)),
        asyncio.gather(*(_ask_pipeline(runs, name, queue) for name, queue in OTHERS.items())),
    )
    checks = [up, _worker_check(workers), *others]
    if isinstance(counts, Failure):
        return _Temporal([*checks, Check("imports by state", False, counts.reason)], {})
    return _Temporal(checks, counts)


def _worker_check(workers: int | Failure) -> Check:
    if isinstance(workers, Failure):
        return Check("workers", False, workers.reason)
    if workers == 0:
        return Check("workers", False, "none polls: start `docflow worker imports`")
    return Check("workers", True, f"{workers} polled in the last minutes")


async def _ask_pipeline(runs: "ImportRuns", name: str, task_queue: str) -> Check:
    """An installation without a pipeline is none that is down."""
    seen = await attempt(runs.pipeline(name, task_queue))
    if isinstance(seen, Failure):
        return Check(name, False, seen.reason)
    if seen.workers == 0 and seen.open:
        start = f"start `docflow worker {name}`"
        return Check(name, False, f"{seen.open:,} open and no worker polls: {start}")
    polled = f"{seen.workers} polled in the last minutes" if seen.workers else "no worker polls"
    return Check(name, True, f"{polled}; {seen.open:,} open, {seen.waiting:,} wait for a person")


async def _counts(runs: "ImportRuns") -> dict[ImportState, int]:
    numbers = await asyncio.gather(*(runs.count(state) for state in STATES))
    return dict(zip(STATES, numbers, strict=True))


async def _ask_database(cli: CliContext) -> _Database:
    async def ask() -> "list[ImportTaskRow]":
        async with cli.resources() as resources:
            return list(await resources.tasks.list(PARKED_SHOWN, ImportState.PARKED))

    parked = await attempt(ask())
    if isinstance(parked, Failure):
        return _Database(Check("database", False, parked.reason), [])
    return _Database(Check("database", True, "schema is current"), parked)


async def _ask_queue(cli: CliContext) -> Check:
    async def ask() -> str:
        async with AsyncExitStack() as stack:
            queue = await stack.enter_async_context(cli.queue())
            depth = await queue.depth(MESSAGES_PEEKED)
        waiting, dead = (
            f"{number}{' or more' if number == depth.at_most else ''}"
            for number in (depth.waiting, depth.dead_letters)
        )
        return f"{waiting} waiting, {dead} in the dead letter queue"

    says = await attempt(ask())
    if isinstance(says, Failure):
        return Check("queue", False, says.reason)
    return Check("queue", True, says)


def _show(
    checks: list[Check], counts: dict[ImportState, int], parked: "list[ImportTaskRow]"
) -> None:
    out = console()
    parts = table("part", "is", "says")
    for check in checks:
        is_up = text("up", "green") if check.up else text("down", "bold red")
        parts.add_row(text(check.part), is_up, text(check.says))
    out.print(parts)
    if counts:
        imports = table("imports", "number", numbers=["number"])
        for state, number in counts.items():
            imports.add_row(state_text(state), text(f"{number:,}"))
        out.print(imports)
    if parked:
        waiting = table("waits for you", "type", "since", "reason")
        for row in parked:
            waiting.add_row(
                text(name_of(row)),
                text(row.document_type),
                text(moment(row.updated_at)),
                text(row.reason),
            )
        out.print(waiting)
        typer.echo("docflow retry | skip | fail ID; `docflow list --state parked` shows all")
