"""A person's answers to a batch that waits."""

from typing import Annotated

import typer

from contracts.batches import BatchAnswer, BatchKey
from workers.cli.batches.access import BatchArgument, CaseArgument, key_of
from workers.cli.errors import CommandError, run
from workers.cli.surroundings import surroundings

app = typer.Typer(rich_markup_mode=None)

Reason = Annotated[str | None, typer.Option(help="Why, for whoever reads the history later.")]


@app.command("retry")
def retry(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, reason: Reason = None
) -> None:
    """Try the step again that a batch waits at.

    \\b
    Example:
      docflow batches retry 7 1
    """
    _run(context, "retry", case, batch, reason)


@app.command("skip")
def skip(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, reason: Reason = None
) -> None:
    """Go on without the step; where that makes no sense, the batch is given up.

    \\b
    Example:
      docflow batches skip 7 1
    """
    _run(context, "skip", case, batch, reason)


@app.command("fail")
def fail(
    context: typer.Context, case: CaseArgument, batch: BatchArgument, reason: Reason = None
) -> None:
    """Give a batch up that waits; its resources are removed.

    \\b
    Example:
      docflow batches fail 7 1 --reason "the case was closed"
    """
    _run(context, "fail", case, batch, reason)


def _run(context: typer.Context, answer: str, case: int, batch: int, reason: str | None) -> None:
    said = BatchAnswer(reason=reason and reason[:500], by=surroundings(context).user)
    run(_answer(answer, key_of(case, batch), said))


async def _answer(name: str, key: BatchKey, answer: BatchAnswer) -> None:
    from temporalio.client import WorkflowUpdateFailedError
    from temporalio.service import RPCError, RPCStatusCode

    from workers.connect import connect

    handle = (await connect()).get_workflow_handle(key.workflow_id)
    try:
        await handle.execute_update(name, answer)
    except WorkflowUpdateFailedError as error:
        raise CommandError(f"{key}: {error.cause}") from error
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise CommandError(f"{key} has no open run that could wait") from error
        raise CommandError(f"{key.workflow_id} does not answer: {error.message}") from error
    typer.echo(f"{key}: {name}")
