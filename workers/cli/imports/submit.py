"""`docflow submit imports`: a document goes in and is followed to its end."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.imports import (
    DocumentType,
    ImportMessage,
    Strategy,
)
from domain.imports.chunks import TaskKey
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
    map_of,
)
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, UsageError, run, stop
from workers.cli.imports.context import open_imports, open_queue, open_runs
from workers.cli.imports.follow import Ending, Follower, ProgressScreen
from workers.cli.imports.messages import build_message, changed, new_task_id
from workers.cli.imports.outcomes import show_ending, show_sent
from workers.cli.output import JsonOption
from workers.services.imports.verbs import name_of

if TYPE_CHECKING:
    from workers.services.imports.access import ImportAccess
    from workers.services.imports.runs import ImportRuns
    from workers.services.service_bus import ServiceBusQueue

app = typer.Typer(rich_markup_mode=None)


@app.command()
def imports(
    context: typer.Context,
    document_type: Annotated[
        DocumentType,
        typer.Option(
            "--type", metavar="TYPE", help=f"What the document is: {', '.join(DocumentType)}."
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
    strategy: Annotated[
        Strategy | None, typer.Option(help="How rows meet those already there [merge].")
    ] = None,
    all_or_nothing: Annotated[
        bool, typer.Option("--all-or-nothing", help="One bad row and nothing goes in.")
    ] = False,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Names the work: what is done once is not done again.")
    ] = None,
    sheet: Annotated[str | None, typer.Option(help="Sheet of a workbook.")] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Text encoding or code page; found out if absent.")
    ] = None,
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


async def _submit(
    cli: CliContext,
    document_type: DocumentType,
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
    # All of them are checked before any is sent.
    work = [
        (changed(build_message(document_type, project, task, file, given), changes), file)
        for task, file in tasks
    ]
    if dry_run:
        from workers.cli.imports.dry_run import dry_run as rehearse

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
    from workers.services.imports.submission import KnownTask, RejectedBefore, submit

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
            f"`docflow rejected resubmit {refusal.number} --body FILE`"
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
