"""How commands show outages."""

from dataclasses import asdict

from contracts.dependencies import OutageStatus
from workers.cli.context import CliContext
from workers.cli.errors import CommandError, Failure, attempt
from workers.cli.output import console, moment, pairs, print_json
from workers.pipelines.base import Run
from workers.services.outages import waiting_for


async def show_run(cli: CliContext, known: Run, *, as_json: bool) -> None:
    """Show an outage: what is down, since when, why, and how many runs wait.

    Raises:
        CommandError: There is none, or nothing that knows of it answers.
    """
    runs = await cli.runs()
    view = await runs.look(known.workflow_id)
    if view is None:
        raise CommandError(f"there is no outage {known.workflow_id}")
    status = await attempt(runs.query(known.workflow_id, "status", OutageStatus))
    if isinstance(status, Failure):
        raise CommandError(status.reason)
    waiting = 0 if view.closed else await waiting_for(runs, known.workflow_id)
    if as_json:
        fields = status and status.model_dump(mode="json")
        print_json({"run": asdict(view), "status": fields, "waiting": waiting})
        return
    shown: list[tuple[str, object]] = [
        ("outage", view.workflow_id),
        ("state", "over" if view.closed else "open"),
        ("in Temporal", view.status),
    ]
    if status is not None:
        shown += [
            ("since", moment(status.since)),
            ("ended", moment(status.ended)),
            ("problem", status.problem),
            ("settings to check", " and ".join(status.settings) or None),
        ]
    shown += [("runs waiting", f"{waiting:,}"), ("link", view.link)]
    console().print(pairs(shown))
