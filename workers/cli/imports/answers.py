"""`docflow retry`, `skip`, `fail`, `cancel`: a person's answers to an import."""

from pathlib import Path
from typing import Annotated

import typer

from contracts.imports import Answer, Retry, workflow_id
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import UsageError, run
from workers.cli.imports.ids import name_of, resolve
from workers.cli.imports.message_files import read_body
from workers.cli.imports.messages import read_message
from workers.cli.imports.views import IdArgument
from workers.cli.output import JsonOption, print_json

ReasonOption = Annotated[str | None, typer.Option(help="Why, for whoever reads the result later.")]
REASON_LENGTH = 500

app = typer.Typer(rich_markup_mode=None)


@app.command()
def retry(
    context: typer.Context,
    id: IdArgument,
    message: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            exists=True,
            dir_okay=False,
            help="Corrected message: same task, project and type.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try a parked import again from the step that failed.

    \b
    Examples:
      docflow retry P1/T1
      docflow retry P1/T1 --message corrected.json
    """
    run(_retry(cli_context(context), id, message, as_json=as_json))


async def _retry(cli: CliContext, id: str, file: Path | None, *, as_json: bool) -> None:
    corrected = None
    if file is not None:
        try:
            corrected = read_message(read_body(file))
        except UsageError as error:
            raise UsageError(f"{file}: {error}") from error
    await _answer(cli, id, "retry", Retry(message=corrected, by=cli.user), as_json=as_json)


@app.command()
def skip(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave a parked document out; its import ends as skipped.

    \b
    Example:
      docflow skip P1/T1 --reason "sent again as T2"
    """
    run(_decide(cli_context(context), id, "skip", reason, as_json=as_json))


@app.command()
def fail(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a parked document up; its import ends as failed.

    \b
    Example:
      docflow fail P1/T1 --reason "the supplier withdrew the list"
    """
    run(_decide(cli_context(context), id, "fail", reason, as_json=as_json))


@app.command()
def cancel(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop an import between two chunks.

    What is committed stays and is counted.

    \b
    Example:
      docflow cancel P1/T1 --reason "wrong project"
    """
    run(_decide(cli_context(context), id, "cancel", reason, as_json=as_json))


async def _decide(
    cli: CliContext, id: str, update: str, reason: str | None, *, as_json: bool
) -> None:
    if reason is not None and len(reason) > REASON_LENGTH:
        raise UsageError(f"--reason has {len(reason)} characters; at most {REASON_LENGTH}")
    await _answer(cli, id, update, Answer(reason=reason, by=cli.user), as_json=as_json)


async def _answer(
    cli: CliContext, id: str, update: str, answer: Retry | Answer, *, as_json: bool
) -> None:
    key = await resolve(cli, id)
    runs = await cli.runs()
    status = await runs.answer(workflow_id(key.project_id, key.task_id), update, answer)
    if as_json:
        print_json(status.model_dump(mode="json"))
        return
    name = name_of(key)
    typer.echo(f"{update} taken; `docflow show {name}` tells how {name} goes on")
