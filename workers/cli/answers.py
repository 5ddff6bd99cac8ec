"""`docflow retry`, `skip`, `fail`, `cancel`: a person's answers to a run of any pipeline."""

from pathlib import Path
from typing import Annotated, Final

import typer

from workers.cli.context import CliContext, cli_context
from workers.cli.errors import UsageError, run
from workers.cli.message_files import read_body
from workers.cli.output import JsonOption, print_json
from workers.cli.runs import IdArgument

ReasonOption = Annotated[str | None, typer.Option(help="The reason, kept with the run.")]
REASON_LENGTH: Final = 500

app = typer.Typer(rich_markup_mode=None)


@app.command()
def retry(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    message: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            exists=True,
            dir_okay=False,
            help="Corrected message of an import: same task, project and type.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try a parked run again from the step that failed.

    \b
    Examples:
      docflow retry P1/T1
      docflow retry batch/7/1 --reason "the topic has room again"
      docflow retry P1/T1 --message corrected.json
    """
    run(_answer(cli_context(context), id, "retry", reason, message, as_json=as_json))


@app.command()
def skip(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Leave out what a run is parked at; an import ends as skipped.

    \b
    Examples:
      docflow skip P1/T1 --reason "sent again as T2"
      docflow skip batch/7/1
    """
    run(_answer(cli_context(context), id, "skip", reason, None, as_json=as_json))


@app.command()
def fail(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a parked run up; it ends as failed.

    \b
    Example:
      docflow fail P1/T1 --reason "the supplier withdrew the list"
    """
    run(_answer(cli_context(context), id, "fail", reason, None, as_json=as_json))


@app.command()
def cancel(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
) -> None:
    """Stop a run at its next safe point.

    What is committed stays and is counted.

    \b
    Examples:
      docflow cancel P1/T1 --reason "wrong project"
      docflow cancel batch/7/1
    """
    run(_answer(cli_context(context), id, "cancel", reason, None, as_json=as_json))


async def _answer(
    cli: CliContext,
    id: str,
    verb: str,
    reason: str | None,
    correction: Path | None,
    *,
    as_json: bool,
) -> None:
    from workers.services.verbs import AnswerRequest, find, refuse_missing, refuse_reason

    check_reason(reason)
    verbs, known = await find(id, cli.environment)
    refuse_missing(verbs, known, verb)
    if reason is not None:
        refuse_reason(verbs, known, verb)
    body = None
    if correction is not None:
        if verb not in verbs.corrects:
            raise UsageError(f"--message: {verbs.name(known)} takes no corrected message")
        body = read_body(correction)
    request = AnswerRequest(verb, by=cli.user, reason=reason, correction=body)
    done = await verbs.answer(cli.environment, known, request)
    if as_json:
        print_json(done)
        return
    typer.echo(f"{verb} accepted; see `docflow show {verbs.name(known)}`")


def check_reason(reason: str | None) -> None:
    """Refuse a reason that is too long.

    Raises:
        UsageError: It is.
    """
    if reason is not None and len(reason) > REASON_LENGTH:
        raise UsageError(f"--reason has {len(reason)} characters; at most {REASON_LENGTH}")
