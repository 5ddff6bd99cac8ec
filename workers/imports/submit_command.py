"""`docflow submit imports`: a document goes in and is followed to its end."""

import asyncio
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from pydantic import TypeAdapter, ValidationError

from workers.imports.commands import (
    Ending,
    Follower,
    Parked,
    ProgressScreen,
    open_imports,
    open_queue,
    open_runs,
)
from workers.imports.messages import upload_name
from workers.imports.run_actions import name_of
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
from workers.shared.cli.errors import CommandError, ExitCode, UsageError, run, stop
from workers.shared.cli.output import (
    JsonOption,
    console,
    counts_text,
    pairs,
    print_json,
    problems_table,
    state_text,
)
from workers.shared.text import one_line
from workflows.imports import findings
from workflows.imports.messages import (
    IMPORT_MESSAGE,
    DeclaredMessage,
    DocumentType,
    ImportMessage,
    Key,
    Message,
    OwnMessage,
    Strategy,
    checked,
)
from workflows.imports.runs import ImportResult, ImportState, TaskKey
from workflows.shared.contracts import problem_text
from workflows.shared.errors import RuleViolation

if TYPE_CHECKING:
    from workers.imports.access import ImportAccess
    from workers.imports.runs import ImportRuns
    from workers.shared.services.service_bus import ServiceBusQueue


OPTIONS: Mapping[str, str] = {
    "document_type": "--type",
    "project_id": "--project",
    "task_id": "--task",
    "service_id": "--service",
    "scope": "--scope",
    "strategy": "--strategy",
    "all_or_nothing": "--all-or-nothing",
    "idempotency_key": "--idempotency-key",
    "sheet": "--sheet",
    "encoding": "--encoding",
    "map": "--map",
    "date_order": "--date-order",
    "decimal": "--decimal",
    "leading_zeros": "--leading-zeros",
    "left_out": "--left-out",
    "keep_lines": "--keep-line",
    "max_rejected_share": "--max-rejected-share",
    "primavera_project_id": "--primavera-project",
    "extraction_id": "--extraction",
    "target_blob_name": "--target-blob",
    "payload": "--payload",
    "filters": "--filters",
    "activity_ids": "--activity-id",
    "filename": "FILE",
    "original_filename": "FILE",
}
"""Field of a message to the option that sets it."""

_JSON_FIELDS = ("payload", "filters")
_FILE_FIELDS = ("temp_blob_name", "blob_name")
_NAME_FIELDS = ("original_filename", "filename")


def _message_classes() -> dict[str, type[Message]]:
    union, _ = get_args(OwnMessage)
    return {
        document_type: message_class
        for message_class in get_args(union)
        for document_type in get_args(message_class.model_fields["document_type"].annotation)
    }


MESSAGE_CLASSES: Mapping[str, type[Message]] = _message_classes()
"""The contract of each of docflow's own document types."""


def contract_of(document_type: str) -> type[Message]:
    """The contract of a document type, of docflow's own or a declared one."""
    return MESSAGE_CLASSES.get(document_type, DeclaredMessage)


def _first_field(document_type: str, names: tuple[str, ...]) -> str | None:
    fields = contract_of(document_type).model_fields
    return next((name for name in names if name in fields), None)


def new_task_id(document_type: str, now: datetime) -> str:
    """A task id that is readable and unique."""
    return f"{document_type.replace('_', '-')}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _parse_json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{option} is not JSON: {error}; quote it like '{{\"level\": 3}}'"
        ) from None


def build_message(
    document_type: str,
    project_id: str,
    task_id: str,
    file: Path | None,
    given: Mapping[str, Any],
) -> ImportMessage:
    """Build the message and check it, before anything is uploaded or sent.

    Args:
        document_type: What the document is.
        project_id: Project it belongs to.
        task_id: Names the import.
        file: The file, for types that work from one.
        given: The other fields as typed, by their name in the message; None: not given.

    Raises:
        UsageError: Options do not fit the type, are missing or wrong; the message names them.
    """
    fields = contract_of(document_type).model_fields
    wanted = {name: value for name, value in given.items() if value is not None}
    if unknown := [OPTIONS[name] for name in wanted if name not in fields]:
        takes = sorted(OPTIONS[name] for name in fields if OPTIONS.get(name, "F")[:2] == "--")
        raise UsageError(
            f"{document_type} does not take {', '.join(unknown)}; it takes {', '.join(takes)}"
        )
    for field, option in (("project_id", project_id), ("task_id", task_id)):
        _check_key(OPTIONS[field], option)
    raw: dict[str, Any] = {
        "document_type": document_type,
        "project_id": project_id,
        "task_id": task_id,
        **_file_fields(document_type, project_id, task_id, file),
        **wanted,
        **{
            name: _parse_json(OPTIONS[name], wanted[name])
            for name in _JSON_FIELDS
            if name in wanted
        },
    }
    if "extraction_id" in fields:
        raw.setdefault("extraction_id", task_id)
    try:
        return checked(json.dumps(raw), IMPORT_MESSAGE)
    except ValidationError as error:
        raise UsageError(f"{document_type}: {describe(error)}") from None


def changed(message: ImportMessage, changes: Mapping[str, Any]) -> ImportMessage:
    """The message with other fields as they were given by name.

    Raises:
        UsageError: It has no such field, or not with this value, or docflow itself sets it.
    """
    if own := sorted(changes.keys() & {*_FILE_FIELDS, "unknown_fields"}):
        raise UsageError(f"{own[0]} follows from FILE and --task")
    try:
        return findings.changed(message, changes)
    except RuleViolation as error:
        raise UsageError(str(error)) from None


def _check_key(option: str, value: str) -> None:
    try:
        TypeAdapter[str](Key).validate_python(value)
    except ValidationError:
        raise UsageError(
            f"{option} {value!r}: use up to 128 letters, digits, blanks, slashes and "
            ". _ : @ + -, beginning with a letter or digit"
        ) from None


def _file_fields(
    document_type: str, project_id: str, task_id: str, file: Path | None
) -> dict[str, str]:
    blob_field = _first_field(document_type, _FILE_FIELDS)
    if blob_field is None:
        if file is not None:
            raise UsageError(f"{document_type} works on what is stored and takes no FILE")
        return {}
    if file is None:
        raise UsageError(f"{document_type} needs a FILE")
    name_field = _first_field(document_type, _NAME_FIELDS)
    assert name_field is not None
    return {
        blob_field: upload_name(project_id, task_id, file.name),
        name_field: file.name[-255:],
    }


def describe(error: ValidationError) -> str:
    """What is wrong with a message, in one line that names options."""
    missing: list[str] = []
    wrong: list[str] = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        # The first parts choose the contract: `own` and the document type, or `declared`.
        path = [str(part) for part in problem["loc"]]
        path = path[2 if path[:1] == ["own"] else 1 :]
        text = one_line(problem_text(problem))
        if not path:
            wrong.append(_in_options(text))
            continue
        name = ".".join([OPTIONS.get(path[0], path[0]), *path[1:]])
        if problem["type"] == "missing":
            missing.append(name)
        else:
            wrong.append(f"{name}: {text}")
    needs = [f"needs {', '.join(missing)}"] if missing else []
    return "; ".join(needs + wrong)[:2000]


def _in_options(text: str) -> str:
    return re.sub(
        r"\b(needs an? )(\w+)",
        lambda found: found[1] + OPTIONS.get(found[2], found[2]),
        text,
    )


def show_sent(message: ImportMessage, *, as_json: bool) -> None:
    """Show where to find an import that is not followed."""
    if as_json:
        print_json({"task": name_of(message), "workflow_id": message.workflow_id})
        return
    name = name_of(message)
    typer.echo(f"sent {name}; see `docflow show {name}`")


def show_ending(
    ending: Ending, message: ImportMessage, runs: "ImportRuns", *, as_json: bool
) -> None:
    """Show result or reason, with what to do next.

    Raises:
        typer.Exit: The import failed, was cancelled, is parked, or was left out for another one
            that has not completed.
    """
    link = runs.link(message.workflow_id)
    if isinstance(ending, Parked):
        _show_parked(ending, message, link, as_json=as_json)
        raise typer.Exit(ExitCode.PARKED)
    if as_json:
        print_json({**ending.model_dump(mode="json"), "link": link})
    else:
        _show_result(ending, link)
    if ending.state in (ImportState.FAILED, ImportState.CANCELLED) or _is_undone(ending):
        raise typer.Exit(ExitCode.FAILED)


def _is_undone(result: ImportResult) -> bool:
    """Whether an import was left out for another one that has not done the work (yet)."""
    return result.state is ImportState.SKIPPED and result.earlier not in (
        None,
        ImportState.COMPLETED,
    )


def _what_to_do(result: ImportResult) -> str:
    """How the work is done after all."""
    listed = f"`docflow list --project {result.project_id}` shows the other one"
    return f"{listed}: submit this one as a new task, under a key of its own"


def _show_result(result: ImportResult, link: str | None) -> None:
    name = name_of(result)
    out = console()
    out.print(
        pairs(
            [
                (result.document_type, name),
                ("state", state_text(result.state)),
                ("rows", counts_text(result.counts)),
                ("reason", result.reason),
                ("note", result.note),
                ("what to do", _what_to_do(result) if _is_undone(result) else None),
                ("report", result.report and f"{result.report.name} (`docflow report {name}`)"),
                ("run", link),
            ]
        )
    )
    if result.problems:
        out.print(problems_table(result.problems, result.problem_count))


def _show_parked(
    parked: Parked, message: ImportMessage, link: str | None, *, as_json: bool
) -> None:
    status = parked.status
    if as_json:
        print_json(
            {
                "task": name_of(message),
                "state": ImportState.PARKED,
                "status": status and status.model_dump(mode="json"),
                "link": link,
            }
        )
        return
    name = name_of(message)
    console().print(
        pairs(
            [
                (message.document_type, name),
                ("state", state_text(ImportState.PARKED)),
                ("step", status and status.step),
                ("reason", status.reason if status else f"see `docflow show {name}`"),
                ("fields not used", ", ".join(message.unknown_fields) or None),
                ("try again", f"docflow retry {name} [--file corrected.xlsx]"),
                ("leave it out", f"docflow skip {name}"),
                ("give it up", f"docflow fail {name}"),
                ("run", link),
            ]
        )
    )


app = typer.Typer(rich_markup_mode=None)


@app.command()
def imports(
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
        str | None, typer.Option(help="Names a schedule extraction [the task].")
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
            "--dry-run", help="Check everything, show what would change, and write nothing."
        ),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.xlsx", help="With --dry-run: where the report of rejected rows goes."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Upload documents, send their messages and follow the imports to their ends.

    Each of several documents, and each file of a folder, is a task of its own.

    A task is done once; one whose run was terminated is done again. Another task with the
    idempotency key (or extraction) of an import that is parked waits for you as well.

    Exit codes: 0 completed (rejected rows or not) or skipped, 1 failed, cancelled, or left out
    for an import of the same work that has not completed, 2 wrong options, 4 parked: it waits
    for your answer.

    \b
    Examples:
      docflow submit imports equipment.xlsx --type equipment --project P1
      docflow submit imports march/ april.xlsx --type equipment --project P1 --dry-run
      docflow submit imports takeoff.xlsx --type mto --project P1 --service S1 --strategy replace
      docflow submit imports crew.csv --type crew_member --project P1 --date-order mdy \\
          --map "Finish=valid_to"
      docflow submit imports plan.xer --type schedule_extraction --project P1 \\
          --primavera-project PLANT
      docflow submit imports --type schedule_fill_level --project P1 \\
          --filters '{"wbs_code": "PLANT.PIPING"}' --payload '{"level": 1, "value": "Piping"}'
      docflow submit imports --type mto_delete --project P1 --service S1
    """
    found = _documents(files or ())
    if len(found) > 1 and (task is not None or report is not None):
        stop(UsageError("--task and --report go with one FILE"))
    if report is not None and not dry_run:
        stop(UsageError("--report goes with --dry-run"))
    now = datetime.now(UTC)
    run(
        _submit(
            cli_context(context),
            document_type,
            project,
            [(task or new_task_id(document_type, now), file) for file in found or (None,)],
            {
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
            },
            changes_of({"schedule_id": schedule}, (), values or ()),
            follow=not no_follow,
            dry_run=dry_run,
            report=report,
            as_json=as_json,
        )
    )


def _documents(given: Sequence[Path]) -> Sequence[Path]:
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
            stop(UsageError(f"the folder {each} holds no files"))
        found += inside
    return found


async def _check_type(cli: CliContext, document_type: str) -> None:
    """See that there is such a type.

    Raises:
        UsageError: There is none.
    """
    if document_type in MESSAGE_CLASSES:
        return
    from adapters.types.store import SqlDeclaredTypes

    async with cli.tables() as database:
        declared = await SqlDeclaredTypes(database).in_force()
    if document_type not in declared:
        known = ", ".join([*MESSAGE_CLASSES, *declared])
        raise UsageError(f"--type {document_type}: there is no such type; there are {known}")


async def _submit(
    cli: CliContext,
    document_type: str,
    project: str,
    tasks: Sequence[tuple[str, Path | None]],
    given: Mapping[str, Any],
    changes: Mapping[str, Any],
    *,
    follow: bool,
    dry_run: bool,
    report: Path | None,
    as_json: bool,
) -> None:
    await _check_type(cli, document_type)
    # All of them are checked before any is sent.
    work = [
        (changed(build_message(document_type, project, task, file, given), changes), file)
        for task, file in tasks
    ]
    if dry_run:
        from workers.imports.commands import dry_run as rehearse

        await rehearse(cli, work, report, as_json=as_json)
        return
    async with AsyncExitStack() as stack:
        queue = await stack.enter_async_context(open_queue(cli))
        resources = await stack.enter_async_context(open_imports(cli))
        # Before anything is sent: who wants to follow has to be able to.
        runs = await open_runs(cli) if follow else None
        sent: list[tuple[ImportMessage, str | None]] = []
        for message, file in work:
            sent.append((message, await _send(queue, resources, message, file, runs)))
            if runs is None or len(work) > 1:
                show_sent(message, as_json=as_json)
        codes: list[int] = []
        for message, earlier in sent if runs is not None else ():
            assert runs is not None
            ending = await _follow(runs, resources, message, earlier)
            try:
                show_ending(ending, message, runs, as_json=as_json)
            except typer.Exit as exit:
                codes.append(exit.exit_code)
        if codes:
            # One that waits for an answer says more than one that failed.
            raise typer.Exit(max(codes))


async def _send(
    queue: "ServiceBusQueue",
    resources: "ImportAccess",
    message: ImportMessage,
    file: Path | None,
    runs: "ImportRuns | None",
) -> str | None:
    """Start the import; a refusal names the options and commands that help.

    Returns:
        Run id of an earlier run of the task that was terminated.
    """
    from workers.imports.runs import KnownTask, RejectedBefore, submit

    name = name_of(message)
    try:
        return await submit(resources, queue, message, file, runs)
    except KnownTask as refusal:
        raise CommandError(
            f"{refusal}; choose another --task, or see `docflow show {name}`"
        ) from refusal
    except RejectedBefore as refusal:
        raise CommandError(
            f"{refusal}; choose another --task, or correct it with "
            f"`docflow message retry {refusal.number} --body FILE`"
        ) from refusal


async def _follow(
    runs: "ImportRuns", resources: "ImportAccess", message: ImportMessage, earlier: str | None
) -> Ending:
    screen = ProgressScreen()
    key = TaskKey(message.project_id, message.task_id)
    with screen.shown():
        try:
            return await Follower(key, runs, resources, screen, earlier=earlier).follow()
        except asyncio.CancelledError:
            screen.hint(
                f"No longer following; the import continues: `docflow show {name_of(message)}`, "
                f"`docflow cancel {name_of(message)}`"
            )
            raise
