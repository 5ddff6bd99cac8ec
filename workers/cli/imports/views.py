"""`docflow list`, `show`, `report`: what became of imports."""

import os
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from contracts.imports import (
    DocumentType,
    ImportPlan,
    ImportState,
    ImportStatus,
    workflow_id,
)
from workers.cli.context import CliContext, cli_context
from workers.cli.errors import CommandError, Failure, UsageError, attempt, run
from workers.cli.imports.ids import name_of, resolve
from workers.cli.output import (
    JsonOption,
    console,
    counts_text,
    moment,
    pairs,
    print_json,
    problems_table,
    problems_text,
    state_text,
    table,
    text,
)
from workers.cli.text import one_line

if TYPE_CHECKING:
    from adapters.database.imports.views import ImportTaskRow
    from workers.services.runs import RunView

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="Task id, project/task, or import/project/task.")
]

PROBLEMS_SHOWN = 20
"""Problems that `show` prints for people; JSON has all that the status row keeps."""

app = typer.Typer(rich_markup_mode=None)


@app.command("list")
def list_imports(
    context: typer.Context,
    state: Annotated[ImportState | None, typer.Option(help="Only imports in this state.")] = None,
    document_type: Annotated[
        DocumentType | None,
        typer.Option("--type", metavar="TYPE", help="Only documents of this type."),
    ] = None,
    project: Annotated[str | None, typer.Option(help="Only imports of this project.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List imports, the newest first; spreadsheets have a list of their own.

    \b
    Examples:
      docflow list --state parked
      docflow spreadsheets list
      docflow list --project P1 --type equipment --json
    """
    run(_list(cli_context(context), state, document_type, project, limit, as_json=as_json))


async def _list(
    cli: CliContext,
    state: ImportState | None,
    document_type: DocumentType | None,
    project: str | None,
    limit: int,
    *,
    as_json: bool,
) -> None:
    async with cli.resources() as resources:
        rows = await resources.tasks.list(limit, state, document_type, project)
    if as_json:
        print_json([row_as_json(row) for row in rows])
        return
    if not rows:
        typer.echo("no imports; `docflow submit imports FILE --type ... --project ...` starts one")
        return
    numbers = ("created", "updated", "unchanged", "rejected")
    made = table("state", "import", "type", *numbers, "since", "what to know", numbers=numbers)
    for row in rows:
        made.add_row(
            state_text(row.state),
            text(name_of(row)),
            text(row.document_type),
            *(text(f"{getattr(row.counts, name):,}") for name in numbers),
            text(moment(row.updated_at)),
            text(row.reason or row.note),
        )
    console().print(made)
    if len(rows) == limit:
        typer.echo(f"the newest {limit}; --limit shows more", err=True)


@app.command()
def show(context: typer.Context, id: IdArgument, as_json: JsonOption = False) -> None:
    """Show one import in full.

    State, rows, problems, plan, and where to look further.

    \b
    Examples:
      docflow show P1/equipment-20260203-101500-4f1d2a
      docflow show import/P1/T1 --json
    """
    run(_show(cli_context(context), id, as_json=as_json))


async def _show(cli: CliContext, id: str, *, as_json: bool) -> None:
    key = await resolve(cli, id)
    name = name_of(key)
    async with cli.resources() as resources:
        row = await resources.tasks.get(key.project_id, key.task_id)
    snapshot = await attempt(_look(cli, workflow_id(key.project_id, key.task_id)))
    if isinstance(snapshot, Failure):
        if row is None:
            raise CommandError(snapshot.reason)
        typer.echo(f"docflow: {one_line(snapshot.reason)}", err=True)
        snapshot = RunSnapshot()
    if row is None and snapshot.view is None:
        raise CommandError(
            f"there is no import {name}: its message may still be in the "
            "queue or was rejected; see `docflow status` and `docflow rejected list`"
        )
    view, status = snapshot.view, snapshot.status
    if as_json:
        print_json(
            {
                "import": row and row_as_json(row),
                "run": view and asdict(view),
                "status": status and status.model_dump(mode="json"),
            }
        )
        return
    out = console()
    shown = _row_pairs(row, name) if row is not None else [("import", name)]
    if view is not None:
        shown += _run_pairs(view, status, name, known_reason=row and row.reason)
    out.print(pairs(shown))
    if row is not None and row.problems:
        out.print(problems_table(row.problems[:PROBLEMS_SHOWN], row.problem_count))


@dataclass(frozen=True)
class RunSnapshot:
    """What Temporal and the worker tell of a run."""

    view: "RunView | None" = None
    status: ImportStatus | None = None


async def _look(cli: CliContext, run: str) -> RunSnapshot:
    runs = await cli.runs()
    view = await runs.look(run)
    if view is None:
        return RunSnapshot()
    return RunSnapshot(view, await runs.status(run))


def _row_pairs(row: "ImportTaskRow", name: str) -> list[tuple[str, object]]:
    return [
        ("import", name),
        ("type", row.document_type),
        ("strategy", row.strategy),
        ("state", state_text(row.state)),
        ("reason", row.reason),
        ("note", row.note),
        ("file", row.filename or row.source_name),
        ("rows", counts_text(row.counts)),
        ("created", moment(row.created_at)),
        ("finished", moment(row.finished_at)),
        ("report", row.report and f"{row.report.name} (`docflow report {name}`)"),
    ]


def _run_pairs(
    view: "RunView", status: ImportStatus | None, name: str, *, known_reason: str | None
) -> list[tuple[str, object]]:
    shown: list[tuple[str, object]] = [
        ("run", view.workflow_id),
        ("in Temporal", view.status),
        ("link", view.link),
    ]
    if status is None:
        shown.append(("step", "not known: no worker answers"))
    else:
        shown += [
            ("step", status.step),
            ("parked since", _since(status)),
            ("because", status.reason if status.reason != known_reason else None),
            ("plan", status.plan and _plan(status.plan)),
        ]
    if view.parked:
        shown.append(("next step", f"docflow retry | skip | fail | cancel {name}"))
    return shown


def _since(status: ImportStatus) -> str | None:
    since = status.waiting_since
    return moment(datetime.fromisoformat(since)) if since else None


def _plan(plan: ImportPlan) -> str:
    where = "in short local steps" if plan.path == "local" else "as a heartbeating activity"
    source = f" from {plan.source.name} ({plan.source.size:,} bytes)" if plan.source else ""
    return f"{plan.facts.handler}{source}, {where}"


def row_as_json(row: "ImportTaskRow") -> dict[str, Any]:
    """A status row for programs; times are ISO 8601."""
    from pydantic import TypeAdapter

    return TypeAdapter(type(row)).dump_python(row, mode="json")


@app.command()
def report(
    context: typer.Context,
    id: IdArgument,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File to write [TASK-problems.xlsx].")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Save the spreadsheet of rejected rows.

    It holds your own rows and what is wrong with each, ready to correct and send again.

    \b
    Examples:
      docflow report P1/T1
      docflow report P1/T1 --out to-correct.xlsx --force
    """
    run(_report(cli_context(context), id, out, force=force))


async def _report(cli: CliContext, id: str, out: Path | None, *, force: bool) -> None:
    key = await resolve(cli, id)
    name = name_of(key)
    target = out or Path(f"{key.task_id}-problems.xlsx")
    if target.exists() and not force:
        raise UsageError(f"{target} exists; name another file with --out, or add --force")
    async with cli.resources() as resources:
        row = await resources.tasks.get(key.project_id, key.task_id)
        if row is None:
            raise CommandError(f"there is no import {name}; `docflow list` shows what there is")
        if row.report is None:
            why = "no row was rejected" if row.problem_count == 0 else f"it is {row.state}"
            raise CommandError(f"{name} has no report: {why}")
        partial = target.with_name(f".{target.name}.part")
        try:
            await resources.blobs.download(row.report.name, partial)
            os.replace(partial, target)
        except OSError as error:
            raise CommandError(f"cannot write {target}: {error.strerror}") from error
        finally:
            partial.unlink(missing_ok=True)
    typer.echo(
        f"saved {target}: {problems_text(row.problem_count)}; correct the rows and submit it as "
        "a new task"
    )
