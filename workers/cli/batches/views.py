"""What batches look like to a person."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.batches import LARGEST_ID, BatchKey, BatchStatus, LoaderStatus, PolledDepth
from workers.cli.batches.access import BatchArgument, CaseArgument, key_of, open_cloud, open_store
from workers.cli.errors import CommandError, run
from workers.cli.output import JsonOption, console, moment, pairs, print_json, table, text
from workers.cli.surroundings import Surroundings, surroundings

if TYPE_CHECKING:
    from adapters.ports import BatchView, FoundResource

app = typer.Typer(rich_markup_mode=None)

_STYLES: Mapping[LoaderStatus, str] = {
    LoaderStatus.WAITING: "dim",
    LoaderStatus.PROCESSING: "cyan",
    LoaderStatus.COMPLETE: "green",
    LoaderStatus.INCOMPLETE: "bold red",
    LoaderStatus.CANCELLED: "magenta",
    LoaderStatus.FAILED: "bold red",
    LoaderStatus.SKIPPED: "dim",
}


@app.command("list")
def list_batches(
    context: typer.Context,
    case: Annotated[int | None, typer.Option(min=1, max=LARGEST_ID)] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 50,
    as_json: JsonOption = False,
) -> None:
    """List batches, the newest change first.

    \\b
    Examples:
      docflow batches list
      docflow batches list --case 7
    """
    run(_list(surroundings(context), case, limit, as_json=as_json))


async def _list(world: Surroundings, case: int | None, limit: int, *, as_json: bool) -> None:
    async with open_store(world) as store:
        views = await store.list(case, limit)
    if as_json:
        print_json([_as_json(view) for view in views])
        return
    numbers = ("loaded", "duplicate", "failed", "loading", "dead letters")
    made = table("case", "batch", "status", *numbers, "changed", "why", numbers=numbers)
    for view in views:
        documents = view.documents
        made.add_row(
            text(view.key.case_id),
            text(view.key.batch_id),
            text(view.status, _STYLES[view.status]),
            *(text(getattr(documents, name) or "") for name in numbers[:-1]),
            text(view.dead_letters or ""),
            text(moment(view.updated_at)),
            text(view.reason),
        )
    console().print(made)


@app.command("show")
def show(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Show a batch: its status, its resources, its queues over the last polls.

    \\b
    Example:
      docflow batches show 7 1
    """
    run(_show(surroundings(context), key_of(case, batch), as_json=as_json))


async def _show(world: Surroundings, key: BatchKey, *, as_json: bool) -> None:
    async with open_store(world) as store:
        view = await store.get(key)
    if view is None:
        raise CommandError(f"there is no {key}; `docflow batches list` shows them")
    status = await _status_of_run(key)
    if as_json:
        said = None if status is None else status.model_dump(mode="json")
        print_json({**_as_json(view), "run": said})
        return
    out = console()
    documents = ", ".join(
        f"{number} {name}" for name, number in view.documents.model_dump().items() if number
    )
    out.print(
        pairs(
            [
                ("batch", str(key)),
                ("status", text(view.status, _STYLES[view.status])),
                ("why", view.reason),
                ("documents", documents or None),
                ("dead letters", view.dead_letters or None),
                ("changed", moment(view.updated_at)),
                ("run", key.workflow_id),
                *_rows_of(status),
            ]
        )
    )
    if status is not None and status.resources:
        made = table("resource", "state")
        for row in status.resources:
            made.add_row(text(row.resource), text(row.state))
        out.print(made)
    if status is not None and status.depths:
        out.print(_depths(status.depths))


def _rows_of(status: BatchStatus | None) -> Sequence[tuple[str, object]]:
    if status is None:
        return [("phase", "no run is known to Temporal")]
    return [
        ("phase", status.phase),
        ("because", status.reason),
        ("validation", status.validation),
        ("redrives", status.redrives or None),
        ("waits since", moment(status.waiting_since)),
        ("answers", status.next_steps),
    ]


def _depths(depths: Sequence[PolledDepth]) -> Any:
    counts = ("visible", "delayed", "in flight", "dead letters", "loads")
    made = table("polled (UTC)", *counts, numbers=counts)
    for one in depths:
        queue = one.queue
        numbers = (queue.visible, queue.delayed, queue.in_flight, one.dead_letters.total, one.loads)
        made.add_row(text(moment(one.at)), *map(text, numbers))
    return made


async def _status_of_run(key: BatchKey) -> BatchStatus | None:
    """What the newest run of a batch says; None: Temporal knows none."""
    from temporalio.service import RPCError, RPCStatusCode

    from workers.connect import connect

    handle = (await connect()).get_workflow_handle(key.workflow_id)
    try:
        return await handle.query("status", result_type=BatchStatus)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise CommandError(f"{key.workflow_id} does not answer: {error.message}") from error


@app.command("resources")
def resources(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, as_json: JsonOption = False
) -> None:
    """Show what exists of a batch in the cloud right now, how old it is, and what it costs by.

    \\b
    Example:
      docflow batches resources 7 1
    """
    run(_resources(surroundings(context), key_of(case, batch), as_json=as_json))


async def _resources(world: Surroundings, key: BatchKey, *, as_json: bool) -> None:
    from activities.batches.sweeping import BatchSweeping

    async with open_cloud(world) as cloud:
        sweeping = BatchSweeping(
            cloud.queues, cloud.topic, cloud.functions, cloud.grants, cloud.runs, cloud.plan
        )
        found = [one async for one in sweeping.everything() if one.key == key]
        is_open = await cloud.runs.is_open(key.workflow_id)
    if as_json:
        print_json({"run": is_open, "resources": [_found_as_json(one) for one in found]})
        return
    if not found:
        typer.echo(f"nothing of {key} exists")
        return
    now = datetime.now(UTC)
    made = table("resource", "name", "age", "details")
    for one in found:
        details = ", ".join(f"{name} {value}" for name, value in one.details.items())
        made.add_row(text(one.resource), text(one.name), text(_age(one, now)), text(details))
    console().print(made)
    if not is_open:
        typer.echo(
            "no run of the batch is open: the sweeper removes all of this but a dead-letter "
            "queue that holds messages",
            err=True,
        )


def _age(found: "FoundResource", now: datetime) -> str:
    if found.made_at is None:
        return ""
    minutes = int((now - found.made_at).total_seconds() // 60)
    return f"{minutes // 60}:{minutes % 60:02} h"


def _found_as_json(found: "FoundResource") -> dict[str, Any]:
    said = asdict(found)
    return {
        **said,
        "key": found.key.model_dump(),
        "details": dict(found.details),
        "made_at": found.made_at and found.made_at.isoformat(),
    }


def _as_json(view: "BatchView") -> dict[str, Any]:
    return {
        "case_id": view.key.case_id,
        "batch_id": view.key.batch_id,
        "status": view.status,
        "reason": view.reason,
        "updated_at": view.updated_at.isoformat(),
        "documents": view.documents.model_dump(),
        "dead_letters": view.dead_letters,
    }
