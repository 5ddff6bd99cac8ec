"""What a person sees when following an import is over."""

from typing import TYPE_CHECKING

import typer

from contracts.imports import ImportMessage, ImportResult, ImportState
from workers.cli.errors import ExitCode
from workers.cli.imports.follow import Ending, Parked
from workers.cli.output import (
    console,
    counts_text,
    pairs,
    print_json,
    problems_table,
    state_text,
)
from workers.services.imports.verbs import name_of

if TYPE_CHECKING:
    from workers.services.imports.runs import ImportRuns


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
