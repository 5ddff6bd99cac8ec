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
        "doctor": Listed(
            f"{_CLI}.setup:doctor_app", "Check everything that docflow needs; it needs no gateway."
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
        "person": _group(
            "workers.spreadsheets.person_commands:app", "People: find and erase them."
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
            "Watches of folders of partners, and files that are expected.",
        ),
        "message": _group(
            f"{_CLI}.messages:app",
            "Rejected messages and dead letters: send or dismiss them.",
        ),
        "schedule": _group(f"{_CLI}.schedules:app", "List, pause and trigger schedules."),
        "login": Listed(
            f"{_CLI}.contexts:login_app", "Keep a gateway and your token, and use them from now on."
        ),
        "context": Listed(f"{_CLI}.contexts:app", "Choose the gateway that commands ask."),
        "token": _group(f"{_CLI}.tokens:app", "Make, list and revoke tokens of programs."),
        "session": _group(
            f"{_CLI}.sessions:app", "Sessions of the pages: list and end them, make sign-in links."
        ),
        "webhook": _group(f"{_CLI}.webhooks:app", "Webhooks: report runs to your programs."),
        "audit": Listed(f"{_CLI}.tokens:audit_app", "List who has changed what, the newest first."),
        "gateway": Listed(f"{_CLI}.gateway:app", "Serve API and pages until SIGTERM or Ctrl-C."),
        "worker": Listed(
            f"{_CLI}.processes:worker_app", "Work on the runs of a pipeline, or of all."
        ),
        "bridge": Listed(
            f"{_CLI}.processes:bridge_app", "Receive messages and start runs for them."
        ),
        "db": _group(
            f"{_CLI}.database:app", "The database: its schema, and rows that are no longer kept."
        ),
    }
)
