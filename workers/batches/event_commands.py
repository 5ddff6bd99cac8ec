"""Events and documents of batches: sent, answered, where they stand, tried again."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from workers.batches import access
from workers.batches.labels import remark
from workers.shared.cli.answers import check_reason
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, UsageError, run
from workers.shared.cli.output import JsonOption, console, moment, print_json, table, text
from workflows.batches.events import (
    BatchEndFinished,
    CancelMode,
    CaseEvent,
    ImportCancelled,
    JobFinished,
    JobStarted,
    RedriveRequested,
)
from workflows.batches.loads import DocumentState
from workflows.batches.names import LARGEST_ID, BatchKey
from workflows.batches.runs import BatchAnswer

if TYPE_CHECKING:
    from activities.batches.records import BatchView
    from workers.batches.resources import BatchResources
    from workers.batches.service import BatchRuns


CaseArgument = Annotated[
    int, typer.Argument(metavar="CASE", min=1, max=LARGEST_ID, help="Number of the case.")
]
BatchArgument = Annotated[
    int, typer.Argument(metavar="BATCH", min=1, max=LARGEST_ID, help="Number of the batch.")
]


def key_of(case: int, batch: int) -> BatchKey:
    """The batch that two arguments name."""
    return BatchKey(case_id=case, batch_id=batch)


def name_of(key: BatchKey) -> str:
    """How commands name a batch."""
    return f"{key.case_id} {key.batch_id}"


async def open_runs(cli: CliContext) -> "BatchRuns":
    """Temporal.

    Raises:
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.batches import service

    return await service.open_runs(cli.environment)


@asynccontextmanager
async def open_cloud(cli: CliContext) -> AsyncGenerator["BatchResources"]:
    """Tables, Temporal and AWS.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.batches.resources import open_batches
    from workers.batches.settings import BatchSettings
    from workers.shared.connect import connect
    from workers.shared.tables import open_tables

    settings = BatchSettings.read(cli.environment)
    async with (
        open_tables(cli.environment) as database,
        open_batches(settings, database, await connect()) as opened,
    ):
        yield opened


ReasonOption = Annotated[str | None, typer.Option(help="The reason, kept with the run.")]

app = typer.Typer(rich_markup_mode=None)


@app.command()
def retry(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Try the step again that a batch is parked at.

    \b
    Example:
      docflow batches retry 7 1
    """
    run(_answer(cli_context(context), "retry", case, batch, reason, as_json=as_json))


@app.command()
def skip(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Continue without a step of the end; before that, the batch is given up.

    \b
    Example:
      docflow batches skip 7 1 --reason "nothing follows this batch"
    """
    run(_answer(cli_context(context), "skip", case, batch, reason, as_json=as_json))


@app.command()
def fail(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a parked batch up; what was built for it is removed.

    \b
    Example:
      docflow batches fail 7 1 --reason "the case was closed"
    """
    run(_answer(cli_context(context), "fail", case, batch, reason, as_json=as_json))


async def _answer(
    cli: CliContext, name: str, case: int, batch: int, reason: str | None, *, as_json: bool
) -> None:
    check_reason(reason)
    key = key_of(case, batch)
    runs = await open_runs(cli)
    await runs.answer(key, name, BatchAnswer(reason=reason, by=cli.user))
    if as_json:
        print_json({**key.model_dump(), "answer": name, "link": runs.link(key.workflow_id)})
        return
    typer.echo(f"{name} accepted; see `docflow batches show {name_of(key)}`")


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
    from workers.batches.settings import read_timings

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


async def _send_if_of_use(cli: CliContext, event: CaseEvent, *, as_json: bool) -> None:
    from workers.batches.service import refuse_in_vain

    runs = await open_runs(cli)
    async with access.open_store(cli.environment) as store:
        await refuse_in_vain(runs, store, event)
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
    check_reason(reason)
    event = ImportCancelled(**key.model_dump(), mode=mode, reason=reason, by=cli.user)
    await _send_if_of_use(cli, event, as_json=as_json)


@app.command()
def redrive(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Try the dead letters of a batch once more, also after its end.

    \b
    Example:
      docflow batches redrive 7 1
    """
    event = RedriveRequested(case_id=case, batch_id=batch)
    run(_send_if_of_use(cli_context(context), event, as_json=as_json))


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
    from workers.batches.settings import read_timings

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


LimitOption = Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")]


@app.command()
def documents(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    state: Annotated[
        DocumentState | None, typer.Option(help="Only those; `failed` with the reasons.")
    ] = None,
    after: Annotated[
        str, typer.Option(metavar="DOCUMENT", help="Only those behind this one.")
    ] = "",
    limit: LimitOption = 100,
    as_json: JsonOption = False,
) -> None:
    """List the documents of a batch: where each stands, and why those failed that did.

    \b
    Examples:
      docflow batches documents 7 1
      docflow batches documents 7 1 --state failed
    """
    key = key_of(case, batch)
    run(_documents(cli_context(context), key, state, after, limit, as_json=as_json))


async def _documents(
    cli: CliContext,
    key: BatchKey,
    state: DocumentState | None,
    after: str,
    limit: int,
    *,
    as_json: bool,
) -> None:
    async with access.open_store(cli.environment) as store:
        _known(await store.get(key), key)
        found = await store.documents(key, state, after, limit)
    if as_json:
        print_json([view.model_dump(mode="json") for view in found])
        return
    if not found:
        kind = f"{state} documents" if state else "documents"
        typer.echo(f"no {kind} of {key}" + (f" behind {after}" if after else ""))
        return
    made = table("document", "state", "file", "changed", "what to know")
    for view in found:
        made.add_row(
            text(view.document_id),
            text(view.state),
            text(view.filename),
            text(moment(view.updated_at)),
            text(remark(view)),
        )
    console().print(made)
    if len(found) == limit:
        typer.echo(f"the first {limit}; --after {found[-1].document_id} shows more", err=True)


@app.command("dead-letters")
def dead_letters(
    context: typer.Context,
    case: CaseArgument,
    batch: BatchArgument,
    limit: LimitOption = 100,
    as_json: JsonOption = False,
) -> None:
    """List messages of a batch that could not be loaded, with the reasons.

    Those in its dead-letter queue, which stay there, and those that were recorded as failed.

    \b
    Example:
      docflow batches dead-letters 7 1
    """
    run(_dead_letters(cli_context(context), key_of(case, batch), limit, as_json=as_json))


async def _dead_letters(cli: CliContext, key: BatchKey, limit: int, *, as_json: bool) -> None:
    from workers.batches.service import beginning_of, unloaded
    from workflows.batches.names import names_of

    async with open_cloud(cli) as cloud:
        _known(await cloud.store.get(key), key)
        names = names_of(cloud.plan.prefix, key)
        found = await unloaded(cloud.queues, cloud.store, key, names, limit)
    if as_json:
        print_json([one.model_dump(mode="json") for one in found])
        return
    if not found:
        typer.echo(f"every message of {key} that docflow took is loaded, or being loaded")
        return
    made = table("where", "document", "message", "since", "reason")
    for one in found:
        made.add_row(
            text(one.where),
            text(one.document_id),
            text(one.event_type or beginning_of(one.body)),
            text(moment(one.at)),
            text(one.reason),
        )
    console().print(made)
    typer.echo(f"`docflow batches retry-failed {name_of(key)}` tries them again")


@app.command("retry-failed")
def retry_failed(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Try everything of a batch again that could not be loaded, also after the final pass.

    Its dead letters, and the messages that were recorded as failed. A batch that has ended is built
    once more for it, and announced again when that is done.

    \b
    Example:
      docflow batches retry-failed 7 1
    """
    run(_retry_failed(cli_context(context), key_of(case, batch), as_json=as_json))


async def _retry_failed(cli: CliContext, key: BatchKey, *, as_json: bool) -> None:
    from workers.batches.service import failed_without_message

    async with access.open_store(cli.environment) as store:
        view = _known(await store.get(key), key)
        # Of those that are dead letters, the queue has the messages.
        failed = view.documents.failed - view.dead_letters
        lost = await failed_without_message(store, key, failed)
    if lost:
        typer.echo(
            f"docflow: {lost:,} failed documents have no message to try again; have them sent once "
            f"more (`docflow batches documents {name_of(key)} --state failed`)",
            err=True,
        )
    event = RedriveRequested(case_id=key.case_id, batch_id=key.batch_id, with_failed=True)
    await _send_if_of_use(cli, event, as_json=as_json)


def _known(view: "BatchView | None", key: BatchKey) -> "BatchView":
    if view is None:
        raise CommandError(f"there is no {key}; `docflow batches list` shows what there is")
    return view
