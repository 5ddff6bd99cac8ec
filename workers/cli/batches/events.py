"""Events of a batch, sent by a person instead of by a message."""

from typing import Annotated

import typer

from contracts.batches import (
    LARGEST_ID,
    BatchEndFinished,
    BatchKey,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
)
from workers.cli.answers import check_reason
from workers.cli.batches.answers import ReasonOption
from workers.cli.batches.context import (
    BatchArgument,
    CaseArgument,
    key_of,
    name_of,
    open_runs,
)
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, UsageError, run
from workers.cli.output import JsonOption, print_json
from workers.services.batches import access

app = typer.Typer(rich_markup_mode=None)

_DAY = 24 * 3600


def _time(what: str, *, least: int = 0, most: int = 30 * _DAY) -> typer.models.OptionInfo:
    return typer.Option(min=least, max=most, metavar="SECONDS", help=what)


@app.command()
def start(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    settle: Annotated[
        int | None, _time("Between `finish` and the first look at the queues.")
    ] = None,
    poll: Annotated[int | None, _time("Between two looks.", least=1, most=_DAY)] = None,
    hold: Annotated[int | None, _time("How long the queue must stay empty.")] = None,
    max_redrives: Annotated[
        int | None, typer.Option(min=0, max=20, help="Passes over the dead letters.")
    ] = None,
    grace: Annotated[
        int | None, _time("How long a lock without infrastructure is respected.")
    ] = None,
    stuck_after: Annotated[int | None, _time("How long it may delay its case.")] = None,
    delivery: Annotated[int | None, _time("How long a filter policy may take to work.")] = None,
    end: Annotated[int | None, _time("How long `end` may take before a person is asked.")] = None,
    patience: Annotated[int | None, _time("How long a failed step waits for a person.")] = None,
    slow_after: Annotated[
        int | None, _time("How long it may load, or drain, before people are asked to look.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Start a batch, as JOB_STARTED does; options take the place of the installation's times.

    \b
    Examples:
      docflow batches start 7 1
      docflow batches start 7 2 --settle 5 --poll 30 --max-redrives 3
    """
    times = {
        "settle": settle,
        "poll": poll,
        "hold": hold,
        "max_redrives": max_redrives,
        "grace": grace,
        "stuck_after": stuck_after,
        "delivery": delivery,
        "end": end,
        "patience": patience,
        "slow_after": slow_after,
    }
    given = {name: value for name, value in times.items() if value is not None}
    run(_start(cli_context(context), case, batch, given, as_json=as_json))


async def _start(
    cli: CliContext, case: int, batch: int, given: dict[str, int], *, as_json: bool
) -> None:
    from workers.settings.batches import read_timings

    timings = read_timings(cli.environment).model_copy(update=given) if given else None
    event = JobStarted(case_id=case, batch_id=batch, timings=timings)
    await _send_if_of_use(cli, event, as_json=as_json)


@app.command()
def finish(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    documents: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_ID, help="How many there are, to be checked.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Report that all documents of a batch have been sent, as JOB_FINISHED does.

    \b
    Examples:
      docflow batches finish 7 1
      docflow batches finish 7 1 --documents 1200
    """
    event = JobFinished(case_id=case, batch_id=batch, documents=documents)
    run(_send_if_of_use(cli_context(context), event, as_json=as_json))


async def _send_if_of_use(
    cli: CliContext, event: JobStarted | JobFinished, *, as_json: bool
) -> None:
    from workers.services.batches.runs import refuse_event_in_vain

    await refuse_event_in_vain(await open_runs(cli), cli.environment, event)
    await send(cli, event, as_json=as_json)


@app.command()
def end(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Report that what follows the loading is done, as BATCH_END_FINISHED does.

    \b
    Example:
      docflow batches end 7 1
    """
    event = BatchEndFinished(case_id=case, batch_id=batch)
    run(send(cli_context(context), event, as_json=as_json))


@app.command()
def cancel(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    partial: Annotated[
        bool, typer.Option("--partial", help="Load what was sent, take nothing more in.")
    ] = False,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Cancel a batch, as IMPORT_CANCELLED does; what was built for it is removed.

    \b
    Examples:
      docflow batches cancel 7 1
      docflow batches cancel 7 1 --partial --reason "the case was closed"
    """
    mode = CancelMode.PARTIAL if partial else CancelMode.FULL
    run(_cancel(cli_context(context), key_of(case, batch), mode, reason, as_json=as_json))


async def _cancel(
    cli: CliContext, key: BatchKey, mode: CancelMode, reason: str | None, *, as_json: bool
) -> None:
    from workers.services.batches.runs import refuse_in_vain

    check_reason(reason)
    await refuse_in_vain(await open_runs(cli), cli.environment, key)
    event = ImportCancelled(**key.model_dump(), mode=mode, reason=reason, by=cli.user)
    await send(cli, event, as_json=as_json)


@app.command()
def redrive(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Try the dead letters of a batch once more, also after its end.

    \b
    Example:
      docflow batches redrive 7 1
    """
    run(_redrive(cli_context(context), case, batch, as_json=as_json))


async def _redrive(cli: CliContext, case: int, batch: int, *, as_json: bool) -> None:
    from workers.services.batches.outcomes import standing

    key = key_of(case, batch)
    async with access.open_store(cli.environment) as store:
        view = await store.get(key)
    if view is None:
        raise CommandError(f"there is no {key}; `docflow batches list` shows what there is")
    if view.status.terminal and not view.dead_letters:
        raise CommandError(
            f"{key} {standing(view.status)} and kept no dead letters: nothing to redrive"
        )
    await send(cli, RedriveRequested(case_id=case, batch_id=batch), as_json=as_json)


@app.command()
def expect(
    context: typer.Context,
    case: CaseArgument,
    batches: Annotated[
        list[int],
        typer.Argument(metavar="BATCH...", help="Their numbers: the order they run in."),
    ],
    as_json: JsonOption = False,
) -> None:
    """Declare which batches of a case will come: none overtakes one with a lower number.

    \b
    Example:
      docflow batches expect 7 1 2 3
    """
    run(_expect(cli_context(context), case, batches, as_json=as_json))


async def _expect(cli: CliContext, case: int, batches: list[int], *, as_json: bool) -> None:
    if wrong := [batch for batch in batches if not 1 <= batch <= LARGEST_ID]:
        raise UsageError(f"{wrong[0]} is not a batch: use a number from 1 to {LARGEST_ID}")
    numbers = sorted(set(batches))
    async with access.open_store(cli.environment) as store:
        await store.expect([key_of(case, batch) for batch in numbers])
    if as_json:
        print_json({"case_id": case, "expected": numbers})
        return
    typer.echo(f"case {case} expects batch {', '.join(map(str, numbers))}")


async def send(cli: CliContext, event: CaseEvent, *, as_json: bool) -> None:
    """Deliver an event to its case."""
    from workers.settings.batches import read_timings

    timings = read_timings(cli.environment)
    runs = await open_runs(cli)
    taken_by = await runs.send(event, timings)
    if as_json:
        fields = event.model_dump(mode="json", exclude_none=True)
        print_json({**fields, "taken_by": taken_by, "link": runs.link(event.key.workflow_id)})
        return
    typer.echo(
        f"{event.event_type} of {event.key} accepted; "
        f"see `docflow batches show {name_of(event.key)}`"
    )
