"""`docflow retry`, `skip`, `fail`, `cancel`: a person's answers to a run of any pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workers.cli.bulk_answers import Selection, retry_all
from workers.cli.changes import (
    DateOrderOption,
    DecimalOption,
    KeepLinesOption,
    LeadingZerosOption,
    LeftOutOption,
    MapOption,
    ScheduleOption,
    SetOption,
    changes_of,
)
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import UsageError, run, stop
from workers.cli.message_files import read_body
from workers.cli.output import JsonOption, print_json
from workers.cli.runs import IdArgument, OptionalId

if TYPE_CHECKING:
    from workers.services.verbs import AnswerRequest, RunVerbs

ReasonOption = Annotated[str | None, typer.Option(help="The reason, kept with the run.")]
REASON_LENGTH: Final = 500

app = typer.Typer(rich_markup_mode=None)


@app.command()
def retry(
    context: typer.Context,
    id: OptionalId = None,
    every: Annotated[
        bool, typer.Option("--all", help="All parked runs, of every pipeline.")
    ] = False,
    pipeline: Annotated[
        str | None, typer.Option(metavar="NAME", help="With --all: only runs of this pipeline.")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="With --all: only documents of this type."),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="The reason, kept with the run. With --all: only runs that are parked for a "
            "reason with this text.",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --all: do not ask.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --all: show which runs, and do nothing.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            readable=True,
            help="Corrected document of an import; it keeps its id.",
        ),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read this sheet of the workbook.")
    ] = None,
    columns: MapOption = None,
    date_order: DateOrderOption = None,
    decimal: DecimalOption = None,
    leading_zeros: LeadingZerosOption = None,
    left_out: LeftOutOption = None,
    keep_lines: KeepLinesOption = None,
    schedule: ScheduleOption = None,
    values: SetOption = None,
    message: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            exists=True,
            dir_okay=False,
            help="Corrected message of an import (same task, project and type), or "
            "parameters of a job, as a JSON object.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Try a parked run again from the step that failed, or all of them.

    With --all it says first how many there are, and asks. What cannot be retried is named in a
    line of its own, and makes the exit code 1.

    \b
    Examples:
      docflow retry P1/T1
      docflow retry batch/7/1 --reason "the topic has room again"
      docflow retry P1/T1 --file corrected.xlsx
      docflow retry P1/T1 --sheet "MTO Rev B" --map "Qty=quantity" --map "Remarks=-"
      docflow retry P1/T1 --date-order mdy --leading-zeros same
      docflow retry P1/T1 --keep-line 7 --keep-line "Sheet 2!14"
      docflow retry P1/T1 --schedule UNIT100
      docflow retry P1/T1 --message corrected.json
      docflow retry --all --type equipment --reason "no space left"
    """
    fields = {
        "sheet": sheet,
        "schedule_id": schedule,
        "date_order": date_order,
        "decimal": decimal,
        "leading_zeros": leading_zeros,
        "left_out": left_out,
    }
    changes = changes_of(fields, columns or (), values or ())
    if keep_lines:
        changes = {**changes, "keep_lines": keep_lines}
    if every:
        of_one = {"an ID": id, "--message": message, "--file": file, "changes": changes or None}
        if refused := [name for name, value in of_one.items() if value is not None]:
            stop(UsageError(f"--all and {refused[0]} do not go together"))
        selection = Selection(pipeline, kind, reason, dry_run=dry_run, is_confirmed=yes)
        run(retry_all(cli_context(context), selection, as_json=as_json))
        return
    given = {"--pipeline": pipeline, "--type": kind, "--yes": yes, "--dry-run": dry_run}
    if named := [name for name, value in given.items() if value]:
        stop(UsageError(f"{named[0]} needs --all"))
    if id is None:
        stop(UsageError("name the ID of a run, or --all"))
    correction = _Correction(message, changes, file)
    run(_answer(cli_context(context), id, "retry", reason, correction, as_json=as_json))


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


@dataclass(frozen=True)
class _Correction:
    """What a person gives with an answer."""

    message: Path | None
    changes: Mapping[str, Any]
    file: Path | None

    def added_to(self, request: "AnswerRequest", verbs: "RunVerbs", name: str) -> "AnswerRequest":
        """The request with what was given.

        Raises:
            UsageError: The run takes no such thing.
        """
        if self.message is not None and request.verb not in verbs.corrects:
            raise UsageError(f"--message: {name} takes no corrected message")
        if (self.changes or self.file is not None) and request.verb not in verbs.changes:
            given = "--file" if self.file is not None else ", ".join(sorted(self.changes))
            raise UsageError(f"{given}: {name} takes no corrected document and no changes")
        return replace(
            request,
            correction=None if self.message is None else read_body(self.message),
            changes=self.changes,
            file=self.file,
        )


async def _answer(
    cli: CliContext,
    id: str,
    verb: str,
    reason: str | None,
    correction: "_Correction | None",
    *,
    as_json: bool,
) -> None:
    from workers.services.known_runs import find, refuse_missing, refuse_reason
    from workers.services.verbs import AnswerRequest

    check_reason(reason)
    verbs, known = await find(id, cli.environment)
    refuse_missing(verbs, known, verb)
    if reason is not None:
        refuse_reason(verbs, known, verb)
    request = AnswerRequest(verb, by=cli.user, reason=reason)
    if correction is not None:
        request = correction.added_to(request, verbs, verbs.name(known))
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
