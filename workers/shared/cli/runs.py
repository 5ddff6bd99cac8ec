"""`docflow run list | show | report`: runs of every pipeline."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from workers.shared.cli.output import console, output_file, problems_table, state_text
from workers.shared.cli.remote import (
    Column,
    Item,
    LimitOption,
    Output,
    OutputOption,
    ask,
    gateway,
    listed,
    show_list,
    show_one,
)

IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Workflow id, or a short form: task id, project/task, UUID, first digits.",
    ),
]
PipelineOption = Annotated[
    list[str] | None,
    typer.Option("--pipeline", metavar="NAME", help="Only of this pipeline. May be repeated."),
]
KindOption = Annotated[
    str | None, typer.Option("--type", metavar="TYPE", help="Only of this type.")
]
ProjectOption = Annotated[str | None, typer.Option(help="Only of this project, or account.")]
OwnerOption = Annotated[str | None, typer.Option(help="Only what this person has started.")]
TextOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Only with this text in the title.")
]
RUN: Final = "/api/v1/runs/{}"
PROBLEMS_SHOWN: Final = 20
"""Problems that `show` prints for people; JSON has all that docflow keeps."""
_COLUMNS: Final[Mapping[str, Column]] = {
    "state": lambda run: state_text(run["state"]),
    "run": "id",
    "type": "kind",
    "pipeline": "pipeline",
    "state of the pipeline": "own_state",
    "changed": "changed_at",
    "what to know": lambda run: run["reason"] or run["title"],
}
_ROWS: Final[Mapping[str, Column]] = {
    "run": "id",
    "pipeline": "pipeline",
    "type": "kind",
    "title": "title",
    "state": lambda run: state_text(run["state"]),
    "state of the pipeline": "own_state",
    "reason": "reason",
    "waits for": lambda run: _awaited(run["waits_for"]),
    "counts": lambda run: words(run["counts"]),
    "project": "project",
    "organisation": "organisation_id",
    "owner": "owner",
    "created": "created_at",
    "changed": "changed_at",
    "ended": "ended_at",
    "page in Temporal": "temporal",
}
_LAST: Final[Mapping[str, Column]] = {
    "report": lambda run: f"docflow report {run['id']}" if run["has_report"] else None,
    "next step": lambda run: _next(run),
}

app = typer.Typer(rich_markup_mode=None)


@app.command("list")
def list_runs(
    context: typer.Context,
    pipeline: PipelineOption = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="Only in this state, for people or of the pipeline."),
    ] = None,
    kind: KindOption = None,
    project: ProjectOption = None,
    owner: OwnerOption = None,
    text: TextOption = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Only with this text in the reason of their state."),
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Only what has changed then or later, in UTC.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(help="Only what has changed earlier, in UTC.")
    ] = None,
    oldest_first: Annotated[
        bool, typer.Option("--oldest-first", help="Begin with the oldest change.")
    ] = False,
    needs_attention: Annotated[
        bool, typer.Option("--needs-attention", help="Only what waits for a person.")
    ] = False,
    limit: LimitOption = 50,
    output: OutputOption = Output.TABLE,
) -> None:
    """List runs of all pipelines, the newest change first.

    \b
    Examples:
      docflow list --needs-attention --oldest-first
      docflow run list --state failed --since 2026-02-03
      docflow list --pipeline batches --reason "no space left"
      docflow list --project P1 --type equipment -o json
    """
    wanted = {
        "pipeline": pipeline,
        "state": state,
        "kind": kind,
        "project": project,
        "owner": owner,
        "text": text,
        "reason": reason,
        "since": None if since is None else f"{since.isoformat()}Z",
        "until": None if until is None else f"{until.isoformat()}Z",
        "needs_attention": needs_attention or None,
    }
    sort = "changed_at" if oldest_first else None
    with gateway(context) as connection:
        found = listed(connection, "/api/v1/runs", limit, sort=sort, **wanted)
    filtered = any(value is not None for value in wanted.values())
    nothing = "no such runs" if filtered else "no runs yet; `docflow --help` shows what starts one"
    show_list(found, output, _COLUMNS, name="id", nothing=nothing)
    if len(found) == limit and output is Output.TABLE:
        typer.echo(f"the newest {limit}; --limit shows more", err=True)


@app.command()
def show(context: typer.Context, id: IdArgument, output: OutputOption = Output.TABLE) -> None:
    """Show one run in full: its state, what it waits for, problems, and the answers it takes now.

    \b
    Examples:
      docflow show P1/equipment-20260203-101500-4f1d2a
      docflow run show batch/7/1
      docflow show import/P1/T1 -o json
    """
    with gateway(context) as connection:
        found = ask(connection, "GET", RUN, id)
    show_run(found, output)


def show_run(found: Item, output: Output) -> None:
    """Show a run with all that its pipeline knows of it."""
    own = {name: _of_details(name) for name in _own_facts(found)}
    show_one(found, output, {**_ROWS, **own, **_LAST}, name="id")
    problems = found["details"].get("problems")
    if output is Output.TABLE and problems:
        from workflows.shared.contracts import Problem

        shown = [Problem.model_validate(each) for each in problems[:PROBLEMS_SHOWN]]
        console().print(problems_table(shown, found["details"]["problem_count"]))


def _own_facts(run: Item) -> Iterator[str]:
    """What the details say in words beyond the run itself."""
    shown = {*run, "workflow_id", "problems", "problem_count", "updated_at", "status"}
    for name, value in run["details"].items():
        if name not in shown and value not in (run["reason"], run["title"]) and words(value):
            yield name


def _of_details(name: str) -> Column:
    def shown(run: Item) -> object:
        return words(run["details"][name])

    return shown


def words(value: object) -> str | None:
    """A value of JSON for people; None: it is empty, or holds more than fits in a line."""
    if isinstance(value, Mapping):
        pairs = [(name, words(each)) for name, each in cast(Item, value).items() if each]
        return ", ".join(f"{name} {each}" for name, each in pairs if each) or None
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [words(each) for each in cast("Sequence[object]", value)]
        return "; ".join(filter(None, parts)) or None
    return None if value is None or value == "" else str(value)


def _awaited(outage: str | None) -> str | None:
    return outage and f"{outage}, by itself; `docflow show {outage}` says why"


def _next(run: Item) -> str | None:
    answers = " | ".join(run["answers"])
    return f"docflow {answers} {run['id']}" if answers else None


@app.command()
def report(
    context: typer.Context,
    id: IdArgument,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File to write [ID-problems.xlsx].")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Save the spreadsheet of rejected rows.

    It holds your own rows and what is wrong with each, ready to correct and send again.

    \b
    Examples:
      docflow report P1/T1
      docflow run report P1/T1 --out to-correct.xlsx --force
    """
    from docflow.client.protocol import Request, place

    target = out or Path(f"{id.rstrip('/').rpartition('/')[2]}-problems.xlsx")
    with gateway(context) as connection, output_file(target, force=force) as partial:
        path = place("/api/v1/runs/{id}/report", id=id)
        connection.download(Request("GET", path, to=partial))
    typer.echo(f"saved {target}; correct the rows and send them again")
