"""How commands show outages."""

from dataclasses import asdict

import typer

from contracts.dependencies import OutageState, OutageStatus
from workers.cli.context import CliContext
from workers.cli.errors import CommandError, Failure, attempt
from workers.cli.output import console, moment, pairs, print_json
from workers.pipelines.base import Run
from workers.services.outages import OutageView, open_outages
from workers.text import one_line


async def show_run(cli: CliContext, known: Run, *, as_json: bool) -> None:
    """Show an outage: what is down, since when, why, and how many runs wait.

    What an open one has in its memo is shown without a worker.

    Raises:
        CommandError: There is none, or Temporal does not answer.
    """
    runs = await cli.runs()
    view = await runs.look(known.workflow_id)
    if view is None:
        raise CommandError(f"there is no outage {known.workflow_id}")
    found = () if view.closed else await open_outages(runs)
    seen = next((each for each in found if each.workflow_id == known.workflow_id), None)
    status = await attempt(runs.query(known.workflow_id, "status", OutageStatus))
    if isinstance(status, Failure):
        typer.echo(f"docflow: {one_line(status.reason)}", err=True)
        status = None
    waiting = 0 if seen is None else seen.waiting
    if as_json:
        fields = status and status.model_dump(mode="json")
        print_json({"run": asdict(view), "status": fields, "waiting": waiting})
        return
    state = OutageState.OVER if view.closed else OutageState.OPEN
    shown: list[tuple[str, object]] = [
        ("outage", view.workflow_id),
        ("state", state),
        ("in Temporal", view.status),
        *_facts(seen, status),
        ("runs waiting", f"{waiting:,}"),
        ("link", view.link),
    ]
    console().print(pairs(shown))


def _facts(seen: OutageView | None, status: OutageStatus | None) -> list[tuple[str, object]]:
    if (known := status or seen) is None:
        return []
    return [
        ("since", moment(known.since)),
        ("ended", None if status is None else moment(status.ended)),
        ("problem", known.problem),
        ("settings to check", " and ".join(known.settings) or None),
    ]
