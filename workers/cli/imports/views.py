"""How commands show one import."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import typer

from contracts.imports import (
    Correction,
    ImportPlan,
    ImportState,
    ImportStatus,
)
from domain.imports.chunks import TaskKey
from workers.cli.context import CliContext
from workers.cli.errors import CommandError, Failure, attempt
from workers.cli.imports.context import open_runs, open_tasks
from workers.cli.output import (
    console,
    counts_text,
    moment,
    pairs,
    print_json,
    problems_table,
    state_text,
)
from workers.cli.runs import is_left_open, outage_pairs
from workers.pipelines.base import Run
from workers.services.imports.verbs import name_of
from workers.text import one_line

if TYPE_CHECKING:
    from adapters.database.imports.views import ImportTaskRow
    from workers.services.runs import RunView

PROBLEMS_SHOWN = 20
"""Problems that `show` prints for people; JSON has all that the status row keeps."""


async def show_run(cli: CliContext, known: Run, *, as_json: bool) -> None:
    """Show one import in full.

    Raises:
        CommandError: There is none, or nothing that knows of it answers.
    """
    from adapters.database.models.imports import FINAL

    key: TaskKey = known.key
    name = name_of(key)
    async with open_tasks(cli) as tasks:
        row = await tasks.get(key.project_id, key.task_id)
    snapshot = await attempt(_look(cli, known.workflow_id))
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
    if row is not None and is_left_open(row.state not in FINAL, snapshot.view):
        row = replace(row, state=ImportState.TERMINATED)
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
    waits = outage_pairs(view)
    shown = _row_pairs(row, name, waits) if row is not None else [("import", name), *waits]
    if view is not None:
        shown += _run_pairs(view, status, name, known_reason=row and row.reason)
    out.print(pairs(shown))
    if row is not None and row.problems:
        out.print(problems_table(row.problems[:PROBLEMS_SHOWN], row.problem_count))


@dataclass(frozen=True)
class RunSnapshot:
    """What Temporal and the worker report about a run."""

    view: "RunView | None" = None
    status: ImportStatus | None = None


async def _look(cli: CliContext, run: str) -> RunSnapshot:
    runs = await open_runs(cli)
    view = await runs.look(run)
    if view is None:
        return RunSnapshot()
    return RunSnapshot(view, await runs.status(run))


def _row_pairs(
    row: "ImportTaskRow", name: str, waits: list[tuple[str, object]]
) -> list[tuple[str, object]]:
    return [
        ("import", name),
        ("type", row.document_type),
        ("strategy", row.strategy),
        *(waits or [("state", state_text(row.state))]),
        ("reason", row.reason),
        ("note", row.note),
        ("file", row.filename or row.source_name),
        ("rows", counts_text(row.counts)),
        *(("corrected", _correction(each)) for each in row.corrections),
        ("created", moment(row.created_at)),
        ("finished", moment(row.finished_at)),
        ("problems removed", moment(row.problems_removed_at)),
        ("report", row.report and f"{row.report.name} (`docflow report {name}`)"),
    ]


def _correction(correction: Correction) -> str:
    at = moment(datetime.fromisoformat(correction.at))
    return f"{at} by {correction.by or 'unknown'}: {correction.changes}"


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
            ("parked since", _since(status) if view.parked else None),
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
