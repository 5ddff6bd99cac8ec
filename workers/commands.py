"""The command tree: every command and group of docflow's own, with the sentence that lists it.

It names entry points and imports none of them: help and completion load no command, and a command
does not load the others.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Listed(NamedTuple):
    """A command or a group of commands as the tree lists it."""

    entry: str
    """`module:attribute` of the typer app, or of a function that makes it."""
    help: str
    group: bool = False


def _group(entry: str, help: str) -> Listed:
    return Listed(entry, help, group=True)


_CLI: Final = "workers.shared.cli"
TREE: Final[Mapping[str, Listed]] = MappingProxyType(
    {
        "setup": Listed(
            f"{_CLI}.setup:app", "Make what docflow needs of Temporal, database, Azure and AWS."
        ),
        "status": Listed(
            f"{_CLI}.status:app", "Show what is up, what cannot be used, and what waits for you."
        ),
        "list": Listed(f"{_CLI}.runs:app", "List runs of all pipelines, the newest change first."),
        "show": Listed(
            f"{_CLI}.runs:app", "Show a run in full: state, what it waits for, problems."
        ),
        "report": Listed(f"{_CLI}.runs:app", "Save the spreadsheet of rejected rows."),
        "retry": Listed(f"{_CLI}.answers:app", "Try parked runs again from the step that failed."),
        "skip": Listed(f"{_CLI}.answers:app", "Leave out what a run is parked at."),
        "fail": Listed(f"{_CLI}.answers:app", "Give a parked run up; it ends as failed."),
        "cancel": Listed(f"{_CLI}.answers:app", "Stop a run at its next safe point."),
        "run": _group(
            f"{_CLI}.following:run_commands",
            "Runs of all pipelines: list, show, follow and answer them.",
        ),
        "import": _group(
            "workers.imports.commands:app",
            "Documents of projects: send them and follow their imports.",
        ),
        "upload": _group(
            "workers.spreadsheets.commands:app", "Uploads: imports that pause for a person."
        ),
        "type": _group(
            "workers.imports.type_commands:app",
            "Declare types of tables, put them in force, write their rows.",
        ),
        "batch": _group(
            "workers.batches.commands:app",
            "Batches of cases: start, finish, cancel and look at them.",
        ),
        "job": _group(
            "workers.jobs.commands:app", "Jobs: submit and restart them, see their tasks and files."
        ),
        "stac": _group(
            "workers.jobs.stac_commands:app", "What is catalogued: STAC items and collections."
        ),
        "transfer": _group(
            "workers.transfers.commands:app",
            "Transfers: send events, assign, reroute and resend them.",
        ),
        "partner": _group(
            "workers.transfers.partner_commands:app",
            "Partners: endpoints of transfers, with keys and limits.",
        ),
        "route": _group(
            "workers.transfers.route_commands:app",
            "Routes: rules that say which queue takes an event.",
        ),
        "watch": _group(
            "workers.transfers.watch_commands:app",
            "Watches: folders of partners whose files are fetched.",
        ),
        "expected": _group(
            "workers.transfers.watch_commands:expected",
            "Expected files: what is due, and what came on which day.",
        ),
        "message": _group(f"{_CLI}.messages:app", "Look at rejected messages and answer them."),
        "dead-letter": _group(
            f"{_CLI}.dead_letters:app", "Look at dead letters, redrive or remove them."
        ),
        "schedule": _group(f"{_CLI}.schedules:app", "List, pause and trigger schedules."),
        "login": Listed(
            f"{_CLI}.contexts:login_app", "Keep a gateway and your token, and use them from now on."
        ),
        "context": _group(f"{_CLI}.contexts:app", "Choose the gateway that commands ask."),
        "token": _group(f"{_CLI}.tokens:app", "Make, list and revoke tokens of programs."),
        "audit": Listed(f"{_CLI}.tokens:audit_app", "List who has changed what, the newest first."),
        "gateway": Listed(f"{_CLI}.gateway:app", "Serve API and pages until SIGTERM or Ctrl-C."),
        "worker": _group(
            f"{_CLI}.processes:worker_commands", "Run workers until SIGTERM or Ctrl-C."
        ),
        "bridge": _group(f"{_CLI}.processes:bridge_commands", "Run what turns messages into runs."),
        "db": _group(f"{_CLI}.database:app", "The database that rows and results go to."),
        "clean": Listed(
            f"{_CLI}.retention:app", "Remove rows that are no longer kept, as schedules do."
        ),
    }
)
