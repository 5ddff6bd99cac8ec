"""`docflow retry`, `skip`, `fail`, `cancel`: a person's answers to one run or to many."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workers import catalogue
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, Failure, UsageError, attempt, run, stop
from workers.shared.cli.output import JsonOption, is_interactive, print_json, read_body
from workers.shared.cli.runs import IdArgument, OptionalId, by_name
from workers.shared.cli.standard_output import require_standard_output
from workers.shared.register import Run
from workers.shared.text import one_line

if TYPE_CHECKING:
    from workers.shared.services.inbox import ParkedRuns
    from workers.shared.services.run_actions import AnswerRequest, RunActions


SheetOption = Annotated[str | None, typer.Option(help="Sheet of a workbook.")]
EncodingOption = Annotated[
    str | None, typer.Option(help="Text encoding or code page; found out if absent.")
]
MapOption = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="HEADER=FIELD",
        help="What a column of the document means; - as FIELD: nothing. May be repeated.",
    ),
]
ScheduleOption = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="ID",
        help="The schedule that the file updates, or the id of a new one.",
    ),
]
DateOrderOption = Annotated[
    str | None,
    typer.Option(metavar="dmy|mdy", help="How 03/04/2025 is read; found out if absent."),
]
DecimalOption = Annotated[
    str | None,
    typer.Option(metavar=".|,", help="Decimal mark of 1,234; found out if absent."),
]
LeadingZerosOption = Annotated[
    str | None,
    typer.Option(
        metavar="same|distinct", help="Whether 123 and the known 00123 are the same code."
    ),
]
LeftOutOption = Annotated[
    str | None,
    typer.Option(
        metavar="note|ask|keep",
        help="What happens to totals, page footers, repeated headers and headings, in the place of "
        "what the type declares.",
    ),
]
KeepLinesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--keep-line",
        metavar="LINE",
        help="Keep this line although it would be left out: 7, or Sheet!7. May be repeated.",
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Another field of the message. May be repeated."
    ),
]


def changes_of(
    fields: Mapping[str, str | None], columns: Sequence[str], values: Sequence[str]
) -> Mapping[str, Any]:
    """Fields of the message to their values.

    Args:
        fields: Those with options of their own; None: it is not given.
        columns: What `MapOption` takes.
        values: What `SetOption` takes.
    """
    changes: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if columns:
        changes["map"] = map_of(columns)
    return {**changes, **dict(_pair("--set", each) for each in values)}


def map_of(columns: Sequence[str]) -> Mapping[str, str]:
    """Headers to fields, as `MapOption` takes them."""
    return pairs_of("--map", columns)


def pairs_of(option: str, given: Sequence[str]) -> Mapping[str, str]:
    """What an option gives that is NAME=VALUE and may be repeated."""
    return dict(_pair(option, each) for each in given)


def _pair(option: str, text: str) -> tuple[str, str]:
    """Both sides of the last equals sign."""
    name, sign, value = (part.strip() for part in text.rpartition("="))
    if not (name and sign and value):
        stop(UsageError(f"{option} {text!r}: write NAME=VALUE"))
    return name, value


@dataclass(frozen=True)
class Selection:
    """Which parked runs are meant, and how the command goes about them."""

    pipeline: str | None = None
    document_type: str | None = None
    reason: str | None = None
    """Text of the reason for which they are parked."""
    dry_run: bool = False
    is_confirmed: bool = False


async def retry_all(cli: CliContext, selection: Selection, *, as_json: bool) -> None:
    """Count the parked runs, ask, and try each of them again.

    Nothing is retried before the count, or with `as_json` an empty line, has been written.

    Raises:
        UsageError: A question cannot be asked.
        CommandError: Some could not be retried.
    """
    from workers.shared.services.inbox import find_parked, gather_bounded
    from workers.shared.services.runs import open_runs

    pipelines = by_name(selection.pipeline, catalogue.PIPELINES)
    if not (selection.is_confirmed or selection.dry_run):
        _require_questions(as_json=as_json)
    found = await find_parked(
        await open_runs(cli.environment),
        "retry",
        pipelines=pipelines,
        document_type=selection.document_type,
        reason=selection.reason,
    )
    if not as_json:
        _show_found(found, listed=selection.dry_run)
    if selection.dry_run or not found.runs:
        if as_json:
            _print(found, [])
        return
    if not selection.is_confirmed:
        typer.confirm(f"Retry {_numbered(found.runs)}?", abort=True)
    if as_json:
        require_standard_output()
    done = await gather_bounded(found.runs, lambda run: attempt(_retry(cli, run)))
    failed = [
        (parked, each.reason)
        for parked, each in zip(found.runs, done, strict=True)
        if isinstance(each, Failure)
    ]
    for parked, why in failed:
        typer.echo(one_line(f"{parked.workflow_id}: {why}"), err=True)
    retried = len(found.runs) - len(failed)
    if as_json:
        _print(found, failed, retried=True)
    else:
        typer.echo(f"{retried} retried, {len(failed)} failed")
    if failed:
        raise CommandError(f"{len(failed)} of {_numbered(found.runs)} could not be retried")


def _require_questions(*, as_json: bool) -> None:
    """Refuse to ask where no person can answer."""
    if as_json:
        raise UsageError("--json asks no questions: add --yes, or --dry-run to see what there is")
    if not is_interactive():
        raise UsageError("there is no terminal to ask at: add --yes, or --dry-run to see them")


async def _retry(cli: CliContext, run: Run) -> None:
    from workers.shared.services.known_runs import of
    from workers.shared.services.run_actions import AnswerRequest

    await of(run.pipeline).answer(cli.environment, run, AnswerRequest("retry", by=cli.user))


def _show_found(found: "ParkedRuns", *, listed: bool) -> None:
    counts = Counter(run.pipeline.name for run in found.runs)
    each = ", ".join(f"{name} {count}" for name, count in counts.items())
    typer.echo(f"{_numbered(found.runs)}{': ' if each else ''}{each}")
    if listed:
        for run in found.runs:
            typer.echo(run.workflow_id)
    for id in found.left_out:
        typer.echo(one_line(f"{id} is parked and offers no retry: left out"), err=True)


def _numbered(runs: Sequence[Run]) -> str:
    return f"{len(runs)} parked run{'' if len(runs) == 1 else 's'}"


def _print(
    found: "ParkedRuns", failed: Sequence[tuple[Run, str]], *, retried: bool = False
) -> None:
    why = {run.workflow_id: reason for run, reason in failed}
    ids = [run.workflow_id for run in found.runs]
    print_json(
        {
            "found": ids,
            "retried": [id for id in ids if id not in why] if retried else [],
            "failed": why,
            "left_out": list(found.left_out),
        }
    )


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

    def added_to(self, request: "AnswerRequest", verbs: "RunActions", name: str) -> "AnswerRequest":
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
    from workers.shared.services.known_runs import find, refuse_missing, refuse_reason
    from workers.shared.services.run_actions import AnswerRequest

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
