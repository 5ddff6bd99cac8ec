"""`docflow import`: documents go in and are followed to their ends."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workers.shared.cli.answers import (
    DateOrderOption,
    DecimalOption,
    EncodingOption,
    KeepLinesOption,
    LeadingZerosOption,
    LeftOutOption,
    MapOption,
    ScheduleOption,
    SetOption,
    SheetOption,
    changes_of,
    map_of,
    pairs_of,
)
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, ExitCode, UsageError, failures_in_one_line, run
from workers.shared.cli.following import follow
from workers.shared.cli.output import console, output_file, problems_table
from workers.shared.cli.progress import sent
from workers.shared.cli.remote import (
    Column,
    Item,
    Output,
    OutputOption,
    gateway,
    show_list,
    show_one,
)
from workers.shared.text import one_line
from workflows.imports.messages import DocumentType, ImportMessage, Strategy
from workflows.shared.errors import RuleViolation

if TYPE_CHECKING:
    from docflow.client.synchronous import Connection
    from workers.imports.rehearsal import Rehearsal

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
)
_COUNTS: Final = ("created", "updated", "unchanged", "rejected", "deleted", "flagged")
_Work = Sequence[tuple[ImportMessage, Path | None]]


@app.command()
def submit(
    context: typer.Context,
    document_type: Annotated[
        str,
        typer.Option(
            "--type",
            metavar="TYPE",
            help=f"What the document is: {', '.join(DocumentType)}, or a declared type.",
        ),
    ],
    project: Annotated[str, typer.Option(help="Project it belongs to.")],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            exists=True,
            readable=True,
            show_default=False,
            help="The documents, or folders of documents; deletes and bulk operations take none.",
        ),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Name of this import; made up if absent.")
    ] = None,
    service: Annotated[
        str | None, typer.Option(help="Service of take-off or estimate lines.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="What rows of a declared type belong to; may be repeated."
        ),
    ] = None,
    strategy: Annotated[
        Strategy | None,
        typer.Option(help="How rows meet those already there; as the type declares it if absent."),
    ] = None,
    all_or_nothing: Annotated[
        bool, typer.Option("--all-or-nothing", help="One bad row and nothing goes in.")
    ] = False,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Names the work: what is done once is not done again.")
    ] = None,
    sheet: SheetOption = None,
    encoding: EncodingOption = None,
    columns: MapOption = None,
    date_order: DateOrderOption = None,
    decimal: DecimalOption = None,
    leading_zeros: LeadingZerosOption = None,
    left_out: LeftOutOption = None,
    keep_lines: KeepLinesOption = None,
    max_rejected_share: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Park where more of the rows are rejected [1.0]."),
    ] = None,
    primavera_project: Annotated[
        str | None, typer.Option(help="Short name or object id of the project in a schedule.")
    ] = None,
    extraction: Annotated[
        str | None, typer.Option(help="Names a schedule extraction, which is done once.")
    ] = None,
    target_blob: Annotated[
        str | None, typer.Option(help="Where an uploaded schedule is to be kept.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="What a bulk operation writes.")
    ] = None,
    filters: Annotated[
        str | None, typer.Option(metavar="JSON", help="Activities of a bulk operation, by column.")
    ] = None,
    activity_id: Annotated[
        list[str] | None,
        typer.Option(metavar="CODE", help="Task code for a bulk operation; may be repeated."),
    ] = None,
    schedule: ScheduleOption = None,
    values: SetOption = None,
    no_follow: Annotated[bool, typer.Option("--no-follow", help="Send, and do not wait.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show what would change in the database of DATABASE_URL, and write nothing.",
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.xlsx", help="With --dry-run: where the report of rejected rows goes."
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Upload documents and follow their imports to their ends.

    Each of several documents, and each file of a folder, is a task of its own. A task is done once;
    one whose run was terminated is done again.

    --dry-run asks no gateway. `docflow type check` does not need a database, and tries a type that
    is not in force yet.

    Exit codes: 0 completed (rejected rows or not) or skipped, 1 failed, cancelled, or skipped for
    an import of the same work that has not completed, 2 wrong options, 4 parked: it waits for your
    answer.

    \b
    Examples:
      docflow import submit equipment.xlsx --type equipment --project P1
      docflow import submit march/ april.xlsx --type equipment --project P1 --dry-run
      docflow import submit takeoff.xlsx --type mto --project P1 --service S1 --strategy replace
      docflow import submit crew.csv --type crew_member --project P1 --date-order mdy \\
          --map "Finish=valid_to"
      docflow import submit plan.xer --type schedule_extraction --project P1 \\
          --primavera-project PLANT
      docflow import submit --type schedule_fill_level --project P1 \\
          --filters '{"wbs_code": "PLANT.PIPING"}' --payload '{"level": 1, "value": "Piping"}'
      docflow import submit --type mto_delete --project P1 --service S1
    """
    given = {
        "service_id": service,
        "scope": pairs_of("--scope", scope or ()) or None,
        "strategy": strategy,
        "all_or_nothing": all_or_nothing or None,
        "idempotency_key": idempotency_key,
        "sheet": sheet,
        "encoding": encoding,
        "map": map_of(columns or ()) or None,
        "date_order": date_order,
        "decimal": decimal,
        "leading_zeros": leading_zeros,
        "left_out": left_out,
        "keep_lines": keep_lines or None,
        "max_rejected_share": max_rejected_share,
        "primavera_project_id": primavera_project,
        "extraction_id": extraction,
        "target_blob_name": target_blob,
        "payload": payload,
        "filters": filters,
        "activity_ids": activity_id or None,
    }
    changes = changes_of({"schedule_id": schedule}, (), values or ())
    with failures_in_one_line():
        found = _documents(files or ())
        if len(found) > 1 and (task is not None or report is not None):
            raise UsageError("--task and --report go with one FILE")
        if report is not None and not dry_run:
            raise UsageError("--report goes with --dry-run")
        # All of them are checked before any is sent.
        work = [_order(document_type, project, task, file, given, changes) for file in found]
    if dry_run:
        run(_rehearse(cli_context(context), work, report, output))
        return
    with gateway(context) as connection:
        accepted = [_send(connection, *each) for each in work]
        several = len(accepted) > 1
        if output is Output.TABLE:
            for each in accepted if several or no_follow else ():
                typer.echo(one_line(f"sent {each['id']}; see `docflow show {each['id']}`"))
        elif no_follow and several:
            show_list(accepted, output, {}, name="id", nothing="")
        elif no_follow:
            show_one(accepted[0], output, {}, name="id")
        if not no_follow:
            follow(connection, [each["id"] for each in accepted], output)


def _documents(given: Sequence[Path]) -> Sequence[Path | None]:
    """The files, and those of each folder by name, hidden ones and locks of Office left out."""
    found: list[Path] = []
    for each in given:
        if not each.is_dir():
            found.append(each)
            continue
        inside = sorted(
            p for p in each.iterdir() if p.is_file() and not p.name.startswith((".", "~$"))
        )
        if not inside:
            raise UsageError(f"the folder {each} holds no files")
        found += inside
    return found or (None,)


def _order(
    document_type: str,
    project: str,
    task: str | None,
    file: Path | None,
    given: Mapping[str, Any],
    changes: Mapping[str, Any],
) -> tuple[ImportMessage, Path | None]:
    from workers.imports.drafts import build_message, changed, new_task_id

    task = task or new_task_id(document_type, datetime.now(UTC))
    return changed(build_message(document_type, project, task, file, given), changes), file


def _send(connection: "Connection", message: ImportMessage, file: Path | None) -> Item:
    """Have an import started; its run."""
    from docflow.client.protocol import Request, new_key
    from workers.imports.service import file_fields

    # The gateway names the file.
    own = {*file_fields(message.document_type)} if file is not None else set[str]()
    body = message.model_dump(mode="json", exclude_unset=True, exclude=own)
    path, key = "/api/v1/documents", new_key()
    if file is None:
        return connection.carry_out(Request("POST", path, body=body, key=key))
    with sent(file) as content:
        form = Request("POST", path, body={"message": body}, files={"file": content}, key=key)
        return connection.carry_out(form)


async def _rehearse(cli: CliContext, work: _Work, report: Path | None, output: Output) -> None:
    """Try imports on copies of the rows that they meet, and show a line for each.

    Each is tried by itself: what an earlier one would write, a later one does not find.

    Raises:
        typer.Exit: One of them would wait for a person.
    """
    from workers.imports.rehearsal import rehearsed
    from workers.shared.settings.targets import TargetSettings

    urls = TargetSettings.read(cli.environment).databases
    shown: list[Item] = []
    async with cli.tables() as database:
        for message, file in work:
            try:
                async with rehearsed(database, message, file, urls) as found:
                    shown.append(_as_item(message, file, found))
                    if report is not None and found.report is not None:
                        with output_file(report, force=False) as target:
                            shutil.copyfile(found.report, target)
                    if output is Output.TABLE and len(work) == 1 and found.outcome.problems:
                        outcome = found.outcome
                        console().print(problems_table(outcome.problems, outcome.problem_count))
            except RuleViolation as error:
                raise UsageError(str(error)) from error
    columns: Mapping[str, Column] = {
        "document": lambda one: Path(one["file"]).name if one["file"] else one["document_type"],
        **{name: _count(name) for name in _COUNTS},
        "problems": lambda one: f"{one['problem_count']:,}",
        "what would happen": lambda one: (
            f"parks: {one['parks']}" if one["parks"] else one["note"] or "completed"
        ),
    }
    show_list(shown, output, columns, name="file", nothing="", numbers=_COUNTS)
    if output is Output.TABLE:
        typer.echo("nothing was written" + (f"; report: {report}" if report else ""))
    if any(each["parks"] for each in shown):
        raise typer.Exit(ExitCode.PARKED)


def _count(name: str) -> Column:
    def counted(one: Item) -> object:
        return f"{one['counts'][name]:,}"

    return counted


def _as_item(message: ImportMessage, file: Path | None, found: "Rehearsal") -> Item:
    outcome = found.outcome
    return {
        "document_type": message.document_type,
        "file": None if file is None else str(file),
        "counts": outcome.counts.model_dump(),
        "problem_count": outcome.problem_count,
        "problems": [each.model_dump(mode="json") for each in outcome.problems],
        "note": outcome.note,
        "parks": found.parks,
        "question": outcome.question and outcome.question.model_dump(),
    }


@app.command()
def undo(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="PROJECT/TASK", help="The import.")],
    output: OutputOption = Output.TABLE,
) -> None:
    """Undo what an import that has ended changed in a table of yours.

    Rows that were changed since stay as they are, and are listed.

    Exit codes: 0 all rows are as they were, 1 some were changed since.

    \b
    Example:
      docflow import undo P1/tools-7
    """
    run(_undo(cli_context(context), name, output))


async def _undo(cli: CliContext, name: str, output: Output) -> None:
    from activities.imports.taken_back import taken_back
    from adapters.ports.errors import Denied
    from workers.imports.type_export import open_targets
    from workflows.imports.runs import TaskKey

    project, _, task = name.removeprefix("import/").partition("/")
    if not task:
        raise UsageError(f"{name!r} is no import; write PROJECT/TASK")
    async with cli.tables() as database, open_targets(cli, database) as targets:
        try:
            async with cli.noted(database, "import undo", f"{project}/{task}"):
                done = await taken_back(database, targets, TaskKey(project, task))
        except (RuleViolation, Denied) as error:
            raise CommandError(str(error)) from error
    conflicts = [(", ".join(map(str, key)), reason) for key, reason in done.conflicts]
    if output is not Output.TABLE:
        found = {"restored": done.restored, "conflicts": conflicts}
        show_one(found, output, {}, name=lambda _: f"{project}/{task}")
    else:
        for key, reason in conflicts:
            typer.echo(f"{key}: {reason}")
        typer.echo(f"{done.restored:,} changes taken back, {len(conflicts):,} not")
    if conflicts:
        raise typer.Exit(ExitCode.FAILED)
