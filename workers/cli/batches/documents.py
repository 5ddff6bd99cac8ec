"""Documents of batches: where they stand, why they failed, and trying those again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.batches import BatchKey, DocumentState, RedriveRequested
from workers.cli.batches.context import BatchArgument, CaseArgument, key_of, name_of, open_cloud
from workers.cli.batches.events import send
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, run
from workers.cli.output import JsonOption, console, moment, print_json, table, text
from workers.services.batches import access
from workers.services.batches.outcomes import standing
from workers.services.batches.remarks import remark

if TYPE_CHECKING:
    from adapters.ports import BatchView, DocumentView

app = typer.Typer(rich_markup_mode=None)

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
        print_json([_as_json(view) for view in found])
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
    from contracts.batches import names_of
    from workers.services.batches.failures import beginning_of, rows_of, unloaded

    async with open_cloud(cli) as cloud:
        _known(await cloud.store.get(key), key)
        names = names_of(cloud.plan.prefix, key)
        found = await unloaded(cloud.queues, cloud.store, key, names, limit)
    if as_json:
        print_json(rows_of(found))
        return
    if not found:
        typer.echo(f"every message of {key} that docflow took is loaded, or being loaded")
        return
    made = table("where", "document", "message", "since", "reason")
    for one in found:
        made.add_row(
            text("dead-letter queue" if one.is_queued else "recorded as failed"),
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
    from workers.services.batches.failures import failed_without_message

    async with access.open_store(cli.environment) as store:
        view = _known(await store.get(key), key)
        recorded: Sequence[object] = await store.failed_messages(key, limit=1)
        # Of those that are dead letters, the queue has the messages.
        failed = view.documents.failed - view.dead_letters
        lost = await failed_without_message(store, key, failed)
    if lost:
        typer.echo(
            f"docflow: {lost:,} failed documents have no message to try again; have them sent once "
            f"more (`docflow batches documents {name_of(key)} --state failed`)",
            err=True,
        )
    if view.status.terminal and not recorded and not view.dead_letters:
        raise CommandError(
            f"{key} {standing(view.status)}, and no message of it waits to be tried again"
        )
    event = RedriveRequested(case_id=key.case_id, batch_id=key.batch_id, with_failed=True)
    await send(cli, event, as_json=as_json)


def _known(view: "BatchView | None", key: BatchKey) -> "BatchView":
    if view is None:
        raise CommandError(f"there is no {key}; `docflow batches list` shows what there is")
    return view


def _as_json(view: "DocumentView") -> dict[str, Any]:
    return {
        "document_id": view.document_id,
        "state": view.state,
        "filename": view.filename,
        "reason": view.reason,
        "failed_event": view.failed_event,
        "duplicate_of": view.duplicate_of,
        "original_state": view.original_state,
        "notes": view.notes,
        "parent_id": view.parent_id,
        "updated_at": view.updated_at.isoformat(),
    }
