"""Where batches stand."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.batches import (
    LARGEST_ID,
    BatchKey,
    BatchStatus,
    LoaderStatus,
    PolledDepth,
    WaitingBatch,
)
from domain.batches.line import waited_for_by, waits_for
from workers.cli.batches.context import (
    BatchArgument,
    CaseArgument,
    key_of,
    name_of,
    open_runs,
)
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, Failure, attempt, run
from workers.cli.output import JsonOption, console, moment, pairs, print_json, table, text
from workers.cli.runs import is_left_open, outage_pairs, show_in_temporal
from workers.pipelines.base import Run
from workers.services.batches import access
from workers.services.batches.outcomes import shown_outcome
from workers.text import one_line

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from adapters.ports import BatchView
    from adapters.ports.leases import LeaseWait
    from workers.services.runs import RunView

app = typer.Typer(rich_markup_mode=None)

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
        print_json([_as_json(view) for view in views])
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


@dataclass(frozen=True)
class RunSnapshot:
    """What Temporal and the worker report about a run."""

    status: BatchStatus | None = None
    link: str | None = None
    view: "RunView | None" = None


async def _show(cli: CliContext, key: BatchKey, *, as_json: bool) -> None:
    async with access.open_store(cli.environment) as store:
        view = await store.get(key)
        line = (await store.note(key.case_id, ())).batches
    lease = await access.lease_wait(cli.environment, key)
    if view is None:
        raise CommandError(f"there is no {key}; `docflow batches list` shows what there is")
    before, after = waits_for(line, key.batch_id), waited_for_by(line, key.batch_id)
    snapshot = await attempt(_look(cli, key))
    if isinstance(snapshot, Failure):
        typer.echo(f"docflow: {one_line(snapshot.reason)}", err=True)
        snapshot = RunSnapshot()
    if is_left_open(view.status is LoaderStatus.PROCESSING, snapshot.view):
        view = replace(view, status=LoaderStatus.TERMINATED)
    status = snapshot.status
    if as_json:
        fields = status and status.model_dump(mode="json")
        shown = {
            "batch": _as_json(view, status),
            "waits_for": [each.batch_id for each in before],
            "waited_for_by": after,
            "waits_for_lease": lease and asdict(lease),
        }
        print_json({**shown, "run": fields, "link": snapshot.link})
        return
    out = console()
    waits = outage_pairs(snapshot.view)
    turn = _turn_pairs(before, after, lease)
    out.print(pairs([*_row_pairs(view, status, waits), *turn, *_run_pairs(view, snapshot)]))
    if status is not None and status.resources:
        resources = table("resource", "state")
        for row in status.resources:
            resources.add_row(text(row.resource), text(row.state))
        out.print(resources)
    if status is not None and status.depths:
        out.print(_depths(status.depths))


async def _look(cli: CliContext, key: BatchKey) -> RunSnapshot:
    runs = await open_runs(cli)
    view = await runs.look(key.workflow_id)
    return RunSnapshot(await runs.status(key), runs.link(key.workflow_id), view)


def _row_pairs(
    view: "BatchView", run: BatchStatus | None, waits: list[tuple[str, object]]
) -> list[tuple[str, object]]:
    documents = view.documents.model_dump()
    return [
        ("batch", str(view.key)),
        ("status", _status(view.status)),
        ("outcome", shown_outcome(view, run)),
        *waits,
        ("reason", view.reason),
        ("documents", ", ".join(f"{number:,} {name}" for name, number in documents.items())),
        ("dead letters", f"{view.dead_letters:,}" if view.dead_letters else None),
        ("LOADER_FINISHED", "not published yet" if view.unannounced else None),
        ("fields not used", ", ".join(view.unused_fields) or None),
        ("changed", moment(view.updated_at)),
    ]


def _turn_pairs(
    before: Sequence[WaitingBatch], after: Sequence[int], lease: "LeaseWait | None"
) -> list[tuple[str, object]]:
    """What it waits for, and who waits for it."""
    waits = None if lease is None else f"{lease.resource} (position {lease.position})"
    return [
        ("waits for", "; ".join(map(_why, before)) or None),
        ("waits for room in the account", waits),
        ("waited for by", f"batch {', '.join(map(str, after))}" if after else None),
    ]


def _why(batch: WaitingBatch) -> str:
    state = "not started" if batch.purpose is None else "waiting for its own turn"
    if batch.status is LoaderStatus.PROCESSING:
        state = "loading"
    return f"batch {batch.batch_id} ({state}, since {moment(batch.since)})"


def _run_pairs(view: "BatchView", snapshot: RunSnapshot) -> list[tuple[str, object]]:
    status = snapshot.status
    if status is None:
        return [("run", "none is known")]
    return [
        ("run", view.key.workflow_id),
        ("link", snapshot.link),
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


def _as_json(view: "BatchView", run: BatchStatus | None = None) -> dict[str, Any]:
    return {
        **view.key.model_dump(),
        "status": view.status,
        "outcome": shown_outcome(view, run),
        "reason": view.reason,
        "documents": view.documents.model_dump(),
        "dead_letters": view.dead_letters,
        "unannounced": view.unannounced,
        "unused_fields": view.unused_fields,
        "updated_at": view.updated_at.isoformat(),
    }
