"""`docflow batches`: batches of cases, what they are made of, and answers to them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.batches import access, event_commands
from workers.batches.event_commands import (
    BatchArgument,
    CaseArgument,
    key_of,
    name_of,
    open_cloud,
    open_runs,
)
from workers.batches.labels import shown_outcome
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, UsageError, run
from workers.shared.cli.output import JsonOption, console, moment, pairs, print_json, table, text
from workers.shared.cli.runs import outage_pairs, show_in_temporal
from workers.shared.register import Run
from workers.shared.text import one_line
from workflows.batches.names import FEWEST_AT_ONCE, LARGEST_ID, MOST_AT_ONCE, BatchKey, LoaderStatus
from workflows.batches.runs import BatchStatus, PolledDepth, WaitingBatch
from workflows.batches.validation import effective_concurrency

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from activities.batches.records import BatchView, ExistingResource
    from workers.batches.service import BatchDetails


app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Batches of cases: start, finish, cancel and look at them.",
)
app.add_typer(event_commands.app)

_SETTING = "DOCFLOW_BATCH_CONCURRENCY"


@app.command()
def concurrency(
    context: typer.Context,
    case: CaseArgument,
    most: Annotated[
        int | None,
        typer.Argument(
            metavar="[N]",
            min=FEWEST_AT_ONCE,
            max=MOST_AT_ONCE,
            help="What to reserve for the function of each of its batches; none: only show it.",
        ),
    ] = None,
    default: Annotated[
        bool, typer.Option("--default", help=f"Forget its own; {_SETTING} counts again.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the concurrency of a case (`max_processing_daemons`), or set it.

    It counts for batches that are built from then on; one that is open keeps its own.

    \b
    Examples:
      docflow batches concurrency 7
      docflow batches concurrency 7 20
      docflow batches concurrency 7 --default
    """
    run(_concurrency(cli_context(context), case, most, default=default, as_json=as_json))


async def _concurrency(
    cli: CliContext, case: int, most: int | None, *, default: bool, as_json: bool
) -> None:
    if default and most is not None:
        raise UsageError("N and --default contradict each other: give one of them")
    installation, room = _installation(cli)
    changes = default or most is not None
    async with access.open_store(cli.environment) as store:
        if changes:
            await store.set_concurrency(case, most)
        own = await store.concurrency(case)
        # What is being built or loaded has read its plan already.
        loading = await store.list(case, status=LoaderStatus.PROCESSING) if changes else ()
    runs_with = installation if own is None else effective_concurrency(own)
    keep = sorted(view.key.batch_id for view in loading)
    if as_json:
        print_json(
            {
                "case_id": case,
                "max_processing_daemons": own,
                "concurrency": runs_with,
                "unchanged_batches": keep,
            }
        )
        return
    if own is None:
        typer.echo(f"case {case} has none of its own: {_SETTING} counts, here {installation:,}")
    else:
        typer.echo(f"max_processing_daemons of case {case} is {own:,}")
    if own is not None and own != runs_with:
        typer.echo(
            f"its batches run with {runs_with:,}: an event source mapping takes "
            f"{FEWEST_AT_ONCE} to {MOST_AT_ONCE:,}"
        )
    if runs_with > room:
        typer.echo(
            f"all batches together may reserve {room:,} (DOCFLOW_BATCH_RESERVED_CONCURRENCY): "
            "each batch of this case waits until it is alone"
        )
    if keep:
        typer.echo(f"batch {', '.join(map(str, keep))} is open, and keeps what it was built with")


def _installation(cli: CliContext) -> tuple[int, int]:
    """What counts where a case has none of its own, and what all batches may reserve together."""
    from workers.batches.settings import BatchSettings

    if BatchSettings.given(cli.environment):
        settings = BatchSettings.read(cli.environment)
        return settings.concurrency, settings.reserved_concurrency
    fields = BatchSettings.model_fields
    return fields["concurrency"].default, fields["reserved_concurrency"].default


@app.command()
def resources(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Show what exists of a batch on AWS right now: how old it is, what it costs by, whose it is.

    \b
    Example:
      docflow batches resources 7 1
    """
    run(_resources(cli_context(context), key_of(case, batch), as_json=as_json))


async def _resources(cli: CliContext, key: BatchKey, *, as_json: bool) -> None:
    from workers.batches.errands import existing

    async with open_cloud(cli) as cloud:
        there = await existing(cloud, key)
    if as_json:
        print_json({**key.model_dump(), **there.model_dump(mode="json")})
        return
    found = there.resources
    if found:
        made = table("resource", "name", "made (UTC)", "age", "costs by", "made by")
        for one in found:
            made.add_row(
                text(one.resource),
                text(one.name),
                text(moment(one.made_at)),
                text(_age(one, there.at)),
                text(", ".join(f"{name} {value}" for name, value in one.details.items())),
                text(one.owner),
            )
        console().print(made)
    typer.echo(there.sentence)


def _age(found: "ExistingResource", now: datetime) -> str | None:
    if found.made_at is None:
        return None
    minutes = max(int((now - found.made_at).total_seconds()), 0) // 60
    return f"{minutes // 60:,} h {minutes % 60:02} min"


_STYLES: Mapping[LoaderStatus, str] = {
    LoaderStatus.WAITING: "dim",
    LoaderStatus.PROCESSING: "cyan",
    LoaderStatus.COMPLETE: "green",
    LoaderStatus.INCOMPLETE: "bold red",
    LoaderStatus.CANCELLED: "magenta",
    LoaderStatus.FAILED: "bold red",
    LoaderStatus.TERMINATED: "bold red",
    LoaderStatus.SKIPPED: "dim",
}


@app.command("list")
def list_batches(
    context: typer.Context,
    case: Annotated[
        int | None, typer.Option(min=1, max=LARGEST_ID, metavar="CASE", help="Only of this one.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List batches, the newest change first.

    \b
    Examples:
      docflow batches list
      docflow batches list --case 7 --json
    """
    run(_list(cli_context(context), case, limit, as_json=as_json))


async def _list(cli: CliContext, case: int | None, limit: int, *, as_json: bool) -> None:
    async with access.open_store(cli.environment) as store:
        views = await store.list(case, limit)
    if as_json:
        print_json([_batch_as_json(view) for view in views])
        return
    if not views:
        typer.echo("no batches; `docflow batches start CASE BATCH` starts one")
        return
    numbers = ("case", "batch", "loaded", "duplicate", "failed", "loading", "dead letters")
    made = table("status", *numbers, "since", "what to know", numbers=numbers)
    for view in views:
        documents = view.documents
        made.add_row(
            _status(view.status),
            text(view.key.case_id),
            text(view.key.batch_id),
            *(text(f"{getattr(documents, name):,}") for name in numbers[2:-1]),
            text(f"{view.dead_letters:,}"),
            text(moment(view.updated_at)),
            text(view.reason),
        )
    console().print(made)
    if len(views) == limit:
        typer.echo(f"the newest {limit}; --limit shows more", err=True)


@app.command()
def show(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Show one batch in full.

    Status, documents, phase of its run, its resources, its queues over the last looks.

    \b
    Example:
      docflow batches show 7 1
    """
    run(_show(cli_context(context), key_of(case, batch), as_json=as_json))


async def show_run(cli: CliContext, known: Run, *, as_json: bool) -> None:
    """Show one batch, case or load of a document in full.

    Raises:
        CommandError: There is none.
    """
    if known.kind.status is BatchStatus:
        await _show(cli, known.key, as_json=as_json)
    else:
        await show_in_temporal(cli, known, as_json=as_json)


async def _show(cli: CliContext, key: BatchKey, *, as_json: bool) -> None:
    from activities.batches.store import SqlBatchStore
    from adapters.database.records import SqlLeases
    from workers.batches.service import details_of
    from workers.shared.services.errors import NotFound
    from workers.shared.tables import open_tables

    async with open_tables(cli.environment) as database:
        opened = partial(open_runs, cli)
        try:
            found = await details_of(SqlBatchStore(database), SqlLeases(database), opened, key)
        except NotFound as error:
            shows = "`docflow batches list` shows what there is"
            raise CommandError(f"{error}; {shows}") from error
    if found.problem is not None:
        typer.echo(f"docflow: {one_line(found.problem)}", err=True)
    status = found.status
    if as_json:
        print_json(
            {
                "batch": _batch_as_json(found.view, status),
                "waits_for": [each.batch_id for each in found.waits_for],
                "waited_for_by": found.waited_for_by,
                "waits_for_lease": found.lease and asdict(found.lease),
                "run": status and status.model_dump(mode="json"),
                "link": found.run and found.run.link,
            }
        )
        return
    out = console()
    out.print(pairs([*_row_pairs(found), *_turn_pairs(found), *_run_pairs(found)]))
    if status is not None and status.resources:
        resources = table("resource", "state")
        for row in status.resources:
            resources.add_row(text(row.resource), text(row.state))
        out.print(resources)
    if status is not None and status.depths:
        out.print(_depths(status.depths))


def _row_pairs(found: "BatchDetails") -> list[tuple[str, object]]:
    view = found.view
    documents = view.documents.model_dump()
    return [
        ("batch", str(view.key)),
        ("status", _status(view.status)),
        ("outcome", found.outcome),
        *outage_pairs(found.run),
        ("reason", view.reason),
        ("documents", ", ".join(f"{number:,} {name}" for name, number in documents.items())),
        ("dead letters", f"{view.dead_letters:,}" if view.dead_letters else None),
        ("LOADER_FINISHED", "not published yet" if view.unannounced else None),
        ("fields not used", ", ".join(view.unused_fields) or None),
        ("changed", moment(view.updated_at)),
    ]


def _turn_pairs(found: "BatchDetails") -> list[tuple[str, object]]:
    """What it waits for, and who waits for it."""
    lease, after = found.lease, found.waited_for_by
    waits = None if lease is None else f"{lease.resource} (position {lease.position})"
    return [
        ("waits for", "; ".join(map(_why, found.waits_for)) or None),
        ("waits for room in the account", waits),
        ("waited for by", f"batch {', '.join(map(str, after))}" if after else None),
    ]


def _why(batch: WaitingBatch) -> str:
    state = "not started" if batch.purpose is None else "waiting for its own turn"
    if batch.status is LoaderStatus.PROCESSING:
        state = "loading"
    return f"batch {batch.batch_id} ({state}, since {moment(batch.since)})"


def _run_pairs(found: "BatchDetails") -> list[tuple[str, object]]:
    view, status = found.view, found.status
    if status is None:
        return [("run", "none is known")]
    return [
        ("run", view.key.workflow_id),
        ("link", found.run and found.run.link),
        ("phase", status.phase),
        ("because", status.reason if status.reason != view.reason else None),
        ("validation", status.validation),
        ("passes over dead letters", status.redrives or None),
        ("parked since", moment(status.waiting_since)),
        (
            "next step",
            f"docflow batches retry | skip | fail {name_of(view.key)}"
            if status.next_steps
            else None,
        ),
    ]


def _depths(depths: Sequence[PolledDepth]) -> "Table":
    counts = ("visible", "delayed", "in flight", "dead letters", "loads")
    made = table("looked (UTC)", *counts, numbers=counts)
    for one in depths:
        queue = one.queue
        numbers = (queue.visible, queue.delayed, queue.in_flight, one.dead_letters.total, one.loads)
        made.add_row(text(moment(one.at)), *(text(f"{number:,}") for number in numbers))
    return made


def _status(status: LoaderStatus) -> "Text":
    return text(status, _STYLES[status])


def _batch_as_json(view: "BatchView", run: BatchStatus | None = None) -> dict[str, Any]:
    return {
        **view.key.model_dump(),
        **view.model_dump(mode="json"),
        "outcome": shown_outcome(view, run),
    }
