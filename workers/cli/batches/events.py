"""What happens to a batch, said by a person instead of by a message."""

import json
import secrets
from typing import Annotated, Any

import typer

from contracts.batches import (
    BatchEndFinished,
    CancelMode,
    ImportCancelled,
    JobEvent,
    JobFinished,
    JobStarted,
    RedriveRequested,
    Timings,
)
from workers.cli.batches.access import BatchArgument, CaseArgument, key_of, open_store
from workers.cli.errors import CommandError, run
from workers.cli.surroundings import Surroundings, surroundings

app = typer.Typer(rich_markup_mode=None)

_DAYS = 30 * 24 * 3600
Seconds = Annotated[int | None, typer.Option(min=0, max=_DAYS, help="Seconds; see docs.")]


@app.command("start")
def start(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    settle: Seconds = None,
    poll: Annotated[int | None, typer.Option(min=1, max=24 * 3600, help="Seconds.")] = None,
    hold: Seconds = None,
    grace: Seconds = None,
    stuck_after: Seconds = None,
    delivery: Seconds = None,
    end: Seconds = None,
    patience: Seconds = None,
    max_redrives: Annotated[int | None, typer.Option(min=0, max=20)] = None,
) -> None:
    """Start a batch, as JOB_STARTED does; options replace the installation's times.

    \\b
    Examples:
      docflow batches start 7 1
      docflow batches start 7 2 --poll 30 --max-redrives 3
    """
    given = {
        "settle": settle,
        "poll": poll,
        "hold": hold,
        "grace": grace,
        "stuck_after": stuck_after,
        "delivery": delivery,
        "end": end,
        "patience": patience,
        "max_redrives": max_redrives,
    }
    run(_start(surroundings(context), case, batch, given))


async def _start(world: Surroundings, case: int, batch: int, given: dict[str, int | None]) -> None:
    from workers.batch_settings import read_timings

    times = {name: value for name, value in given.items() if value is not None}
    timings: Timings | None = None
    if times:
        timings = read_timings(world.environment).model_copy(update=times)
    await _tell(world, JobStarted(case_id=case, batch_id=batch, timings=timings))


@app.command("finish")
def finish(context: typer.Context, case: CaseArgument, batch: BatchArgument) -> None:
    """Say that all documents of a batch have been sent, as JOB_FINISHED does.

    \\b
    Example:
      docflow batches finish 7 1
    """
    run(_tell(surroundings(context), JobFinished(case_id=case, batch_id=batch)))


@app.command("end")
def end(context: typer.Context, case: CaseArgument, batch: BatchArgument) -> None:
    """Say that what follows the loading is done, as BATCH_END_FINISHED does.

    \\b
    Example:
      docflow batches end 7 1
    """
    run(_tell(surroundings(context), BatchEndFinished(case_id=case, batch_id=batch)))


@app.command("cancel")
def cancel(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    partial: Annotated[
        bool, typer.Option("--partial", help="Load what is in flight, take nothing more in.")
    ] = False,
) -> None:
    """Cancel a batch, as IMPORT_CANCELLED does; its resources are removed.

    \\b
    Examples:
      docflow batches cancel 7 1
      docflow batches cancel 7 1 --partial
    """
    mode = CancelMode.PARTIAL if partial else CancelMode.FULL
    run(_tell(surroundings(context), ImportCancelled(case_id=case, batch_id=batch, mode=mode)))


@app.command("redrive")
def redrive(context: typer.Context, case: CaseArgument, batch: BatchArgument) -> None:
    """Try the dead letters of a batch once more, also after its end.

    \\b
    Example:
      docflow batches redrive 7 1
    """
    run(_redrive(surroundings(context), case, batch))


async def _redrive(world: Surroundings, case: int, batch: int) -> None:
    key = key_of(case, batch)
    async with open_store(world) as store:
        view = await store.get(key)
    if view is None:
        raise CommandError(f"there is no {key}; `docflow batches list` shows them")
    if view.status.terminal and not view.dead_letters:
        raise CommandError(f"{key} is {view.status} and kept no dead letters: nothing to redrive")
    await _tell(world, RedriveRequested(case_id=case, batch_id=batch))


@app.command("expect")
def expect(
    context: typer.Context,
    case: CaseArgument,
    batches: Annotated[list[int], typer.Argument(metavar="BATCH...", min=1)],
) -> None:
    """Make known which batches of a case will come, so that their order is kept.

    \\b
    Example:
      docflow batches expect 7 1 2 3
    """
    run(_expect(surroundings(context), case, batches))


async def _expect(world: Surroundings, case: int, batches: list[int]) -> None:
    keys = [key_of(case, batch) for batch in batches]
    async with open_store(world) as store:
        await store.expect(keys)
    typer.echo(f"case {case} expects {len(set(keys))} batches")


async def _tell(world: Surroundings, event: JobEvent) -> None:
    """Hand an event to its case through the same door as the bridge."""
    from workers.batch_settings import read_timings
    from workers.bridges.batch_door import BatchDoor
    from workers.bridges.verdicts import Settle
    from workers.connect import connect

    timings = read_timings(world.environment)
    async with world.resources() as resources:
        door = BatchDoor(
            await connect(), resources.rejected, queue="docflow batches", timings=timings
        )
        body: dict[str, Any] = event.model_dump(mode="json", by_alias=True, exclude_none=True)
        # A person who says something twice means it twice: each time is a message of its own.
        verdict = await door.accept(json.dumps(body).encode(), 0, secrets.token_hex())
    if not isinstance(verdict, Settle):
        raise CommandError(f"{event.event_type} was not taken: {verdict.reason}; try again")
    typer.echo(f"{event.event_type} of {event.key} was taken by {verdict.workflow_id}")
