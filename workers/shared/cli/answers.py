"""`docflow retry`, `skip`, `fail`, `cancel`: a person's answers to one run or to many."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from workers.shared.cli.errors import ExitCode, UsageError, failures_in_one_line, stop
from workers.shared.cli.output import is_interactive, read_object
from workers.shared.cli.remote import (
    Item,
    Output,
    OutputOption,
    ReasonOption,
    ask,
    gateway,
    show_one,
)
from workers.shared.cli.runs import (
    RUN,
    IdArgument,
    KindOption,
    OwnerOption,
    PipelineOption,
    ProjectOption,
    TextOption,
)
from workers.shared.cli.standard_output import require_standard_output
from workers.shared.text import one_line

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
        "--set",
        metavar="FIELD=VALUE",
        help="Another field of the message, or a parameter of a job. May be repeated.",
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
    return {**changes, **dict(_pair("--set", each, each.partition("=")) for each in values)}


def map_of(columns: Sequence[str]) -> Mapping[str, str]:
    """Headers to fields, as `MapOption` takes them."""
    return pairs_of("--map", columns)


def pairs_of(option: str, given: Sequence[str]) -> Mapping[str, str]:
    """What an option gives that is NAME=VALUE and may be repeated."""
    return dict(_pair(option, each, each.rpartition("=")) for each in given)


def _pair(option: str, text: str, parts: Sequence[str]) -> tuple[str, str]:
    """Both sides of an equals sign."""
    name, sign, value = (part.strip() for part in parts)
    if not (name and sign and value):
        stop(UsageError(f"{option} {text!r}: write NAME=VALUE"))
    return name, value


OptionalId = Annotated[
    str | None, typer.Argument(metavar="ID", help="As for the other answers; none with --all.")
]
app = typer.Typer(rich_markup_mode=None)


@app.command()
def retry(
    context: typer.Context,
    id: OptionalId = None,
    every: Annotated[
        bool, typer.Option("--all", help="All parked runs, of every pipeline.")
    ] = False,
    pipeline: PipelineOption = None,
    kind: KindOption = None,
    project: ProjectOption = None,
    owner: OwnerOption = None,
    text: TextOption = None,
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
            help="Corrected message of an import (same task, project and type), "
            "parameters of a job, or settings of an action, as a JSON object.",
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
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
      docflow retry 5eed5eed --set datetime=2024-05-01T10:30:00Z
      docflow retry --all --type equipment --reason "no space left"
      docflow run retry P1/T1
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
    chosen = {"pipeline": pipeline, "kind": kind, "project": project, "owner": owner, "text": text}
    if every:
        of_one = {"an ID": id, "--message": message, "--file": file, "changes": changes or None}
        if refused := [name for name, value in of_one.items() if value is not None]:
            stop(UsageError(f"--all and {refused[0]} do not go together"))
        runs = {**chosen, "reason": reason}
        _retry_all(context, runs, output, yes=yes, dry_run=dry_run)
        return
    given = {**chosen, "yes": yes, "dry-run": dry_run}
    if named := [name for name, value in given.items() if value]:
        stop(UsageError(f"--{'type' if named[0] == 'kind' else named[0]} needs --all"))
    if id is None:
        stop(UsageError("name the ID of a run, or --all"))
    if file is None:
        _answer(context, id, "retry", reason, output, changes=changes, input=_input(message))
    elif message is not None or reason is not None:
        stop(UsageError(f"--file and {'--message' if message else '--reason'} do not go together"))
    else:
        _retry_with_file(context, id, file, changes, output)


def _input(message: Path | None) -> Mapping[str, Any] | None:
    """The JSON object of a file."""
    if message is None:
        return None
    with failures_in_one_line():
        return read_object(message)


@app.command()
def skip(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Leave out what a run is parked at; an import ends as skipped.

    \b
    Examples:
      docflow skip P1/T1 --reason "sent again as T2"
      docflow run skip batch/7/1
    """
    _answer(context, id, "skip", reason, output)


@app.command()
def fail(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give a parked run up; it ends as failed.

    \b
    Examples:
      docflow run fail P1/T1
      docflow fail P1/T1 --reason "the supplier withdrew the list"
    """
    _answer(context, id, "fail", reason, output)


@app.command()
def cancel(
    context: typer.Context,
    id: IdArgument,
    reason: ReasonOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Stop a run at its next safe point.

    What is committed stays and is counted.

    \b
    Examples:
      docflow cancel P1/T1 --reason "wrong project"
      docflow run cancel batch/7/1
    """
    _answer(context, id, "cancel", reason, output)


def _answer(
    context: typer.Context, id: str, verb: str, reason: str | None, output: Output, **given: Any
) -> None:
    body = {"reason": reason, **given}
    with gateway(context) as connection:
        found = ask(connection, "POST", f"{RUN}/{verb}", id, body=body)
    _accepted(found, verb, output)


def _accepted(run: Item, verb: str, output: Output) -> None:
    if output is Output.TABLE:
        typer.echo(f"{verb} accepted; see `docflow show {run['id']}`")
    else:
        show_one(run, output, {}, name="id")


def _retry_with_file(
    context: typer.Context, id: str, file: Path, changes: Mapping[str, Any], output: Output
) -> None:
    """Send a corrected document: the import keeps its id."""
    from docflow.client.protocol import Request

    with gateway(context) as connection:
        found = ask(connection, "GET", RUN, id)
        form = {"id": found["answers_at"], "changes": json.dumps(changes)}
        connection.carry_out(
            Request("POST", "/api/v1/documents/corrections", body=form, files={"file": file})
        )
    _accepted(found, "retry", output)


def _retry_all(
    context: typer.Context, runs: Mapping[str, Any], output: Output, *, yes: bool, dry_run: bool
) -> None:
    """Count the parked runs, ask, and try each of them again."""
    if not (yes or dry_run):
        _require_questions(output)
    order: dict[str, Any] = {"answer": "retry", "runs": runs}
    with gateway(context) as connection:
        path = "/api/v1/runs/answers"
        found = ask(connection, "POST", path, body={**order, "dry_run": True})
        count = f"{len(found['found'])} parked run{'' if len(found['found']) == 1 else 's'}"
        if output is Output.TABLE:
            typer.echo(count)
            for id in found["found"] if dry_run else ():
                typer.echo(one_line(id))
            for id in found["left_out"]:
                typer.echo(one_line(f"{id} does not fit, or takes no retry: left out"), err=True)
        if not dry_run and found["found"]:
            if not yes:
                typer.confirm(f"Retry {count}?", abort=True)
            require_standard_output()
            # Nothing is retried that was not counted.
            order["runs"] = {**runs, "ids": found["found"]}
            more = found["more"]
            found = ask(connection, "POST", path, body={**order, "dry_run": False})
            found["more"] = more
    _show_all(found, output)
    if found["failed"]:
        raise typer.Exit(ExitCode.FAILED)


def _show_all(found: Item, output: Output) -> None:
    if output is not Output.TABLE:
        show_one(found, output, {}, name=lambda item: "\n".join(item["found"]))
        return
    for id, why in found["failed"].items():
        typer.echo(one_line(f"{id}: {why}"), err=True)
    if not found["dry_run"]:
        failed = len(found["failed"])
        typer.echo(f"{len(found['found']) - failed} retried, {failed} failed")
    if found["more"]:
        typer.echo("there are more: repeat the command for them", err=True)


def _require_questions(output: Output) -> None:
    """Refuse to ask where no person can answer."""
    if output is not Output.TABLE:
        stop(UsageError(f"-o {output} asks no questions: add --yes, or --dry-run"))
    if not is_interactive():
        stop(UsageError("there is no terminal to ask at: add --yes, or --dry-run to see them"))
