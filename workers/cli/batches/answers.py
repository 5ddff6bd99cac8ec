"""A person's answers to a batch that waits."""

from typing import Annotated

import typer

from contracts.batches import BatchAnswer
from workers.cli.answers import check_reason
from workers.cli.batches.context import BatchArgument, CaseArgument, key_of, name_of, open_runs
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import run
from workers.cli.output import JsonOption, print_json

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
