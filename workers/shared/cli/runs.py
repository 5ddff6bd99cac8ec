"""`docflow list`, `show`, `report`: runs of every pipeline by id, and outages."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from workers import catalogue
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import CommandError, Failure, UsageError, attempt, run
from workers.shared.cli.output import (
    JsonOption,
    console,
    moment,
    output_file,
    pairs,
    print_json,
    state_text,
    table,
)
from workers.shared.cli.output import text as plain
from workers.shared.register import Run, RunGroup, load
from workers.shared.services.outages import OutageView, open_outages
from workers.shared.text import one_line
from workflows.shared.dependencies import WAITING, OutageState, OutageStatus, label_of
from workflows.shared.records import TERMINATED

if TYPE_CHECKING:
    from workers.shared.services.runs import RunView
    from workflows.shared.runs import RunFilter, RunRecord


Group = TypeVar("Group", bound=RunGroup)


def by_name(name: str | None, groups: Sequence[Group]) -> Sequence[Group]:
    """The pipelines, or other groups of runs, that an option means.

    Args:
        name: As it was written; None: all of them.
        groups: Those that there are.

    Raises:
        UsageError: There is none of that name.
    """
    if name is None:
        return groups
    known = {each.name: each for each in groups}
    if name not in known:
        raise UsageError(f"--pipeline {name}: there are {', '.join(known)}")
    return (known[name],)


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


_ID: Any = typer.Argument(
    metavar="ID",
    help="Workflow id, or a short form: task id, project/task, UUID of a spreadsheet.",
)
IdArgument = Annotated[str, _ID]
OptionalId = Annotated[str | None, _ID]

app = typer.Typer(rich_markup_mode=None)


@app.command("list")
def list_runs(
    context: typer.Context,
    pipeline: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only runs of this pipeline.")
    ] = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE", help="Only runs in this state, for people or of the pipeline."
        ),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only runs of this type.")
    ] = None,
    project: Annotated[
        str | None, typer.Option(help="Only runs of this project, or account.")
    ] = None,
    needs_attention: Annotated[
        bool, typer.Option("--needs-attention", help="Only runs that wait for a person.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List runs of all pipelines, the newest change first, and outages.

    Outages are listed while a run is open, and in any case by --pipeline outages. A list of one
    pipeline shows its own states and counts.

    \b
    Examples:
      docflow list --needs-attention
      docflow list --state parked
      docflow list --pipeline batches
      docflow list --project P1 --type equipment --json
    """
    from workflows.shared.runs import RunFilter

    wanted = RunFilter(limit, state=state, kind=kind, project=project)
    listing = _list(cli_context(context), pipeline, wanted, needs_attention, as_json=as_json)
    run(listing)


async def _list(
    cli: CliContext,
    pipeline: str | None,
    wanted: "RunFilter",
    needs_attention: bool,
    *,
    as_json: bool,
) -> None:
    from workers.shared.services.known_runs import list_runs

    groups = by_name(pipeline, catalogue.run_groups())
    listed = await list_runs(cli.environment, groups, wanted, needs_attention=needs_attention)
    if listed.problem is not None:
        typer.echo(f"open runs are shown by their rows alone: {listed.problem}", err=True)
    if as_json:
        print_json([each.model_dump(mode="json") for each in listed.runs])
        return
    if not listed.runs:
        typer.echo(_no_runs(pipeline, wanted, needs_attention))
        return
    _show_list(listed.runs, of_one=len(groups) == 1)
    if len(listed.runs) == wanted.limit:
        typer.echo(f"the newest {wanted.limit}; --limit shows more", err=True)


def _no_runs(pipeline: str | None, wanted: "RunFilter", needs_attention: bool) -> str:
    given = {
        "pipeline": pipeline,
        "state": wanted.state,
        "type": wanted.kind,
        "project": wanted.project,
    }
    named = [f"--{name} {value}" for name, value in given.items() if value is not None]
    if needs_attention:
        return f"no runs{''.join(f' with {each}' for each in named)} wait for a person"
    if not named:
        return "no runs yet; `docflow submit --help` starts one"
    return f"no runs with {' '.join(named)}"


def _show_list(runs: "Sequence[RunRecord]", *, of_one: bool) -> None:
    from workers.shared.services.known_runs import name_of

    counted = (name for each in runs for name in each.counts) if of_one else ()
    counts = tuple(dict.fromkeys(counted))
    every = ("state of the pipeline",) if of_one else ("pipeline",)
    names = [name.replace("_", " ") for name in counts]
    made = table("state", "run", "type", *every, *names, "since", "what to know", numbers=names)
    for each in runs:
        made.add_row(
            state_text(each.state),
            plain(name_of(each)),
            plain(each.kind),
            plain(each.own_state if of_one else each.pipeline),
            *(plain(f"{each.counts[name]:,}" if name in each.counts else "") for name in counts),
            plain(moment(each.changed_at)),
            plain(each.reason or each.title),
        )
    console().print(made)


@app.command()
def show(context: typer.Context, id: IdArgument, as_json: JsonOption = False) -> None:
    """Show one run in full.

    State, what was done, problems, and where to look further.

    \b
    Examples:
      docflow show P1/equipment-20260203-101500-4f1d2a
      docflow show batch/7/1
      docflow show import/P1/T1 --json
    """
    run(_show(cli_context(context), id, as_json=as_json))


async def _show(cli: CliContext, id: str, *, as_json: bool) -> None:
    from workers.shared.services.known_runs import find

    _, known = await find(id, cli.environment)
    if known.pipeline.show is None or known.kind.scheduled:
        await show_in_temporal(cli, known, as_json=as_json)
    else:
        await load(known.pipeline.show)(cli, known, as_json=as_json)


def is_left_open(is_open: bool, view: "RunView | None") -> bool:
    """Whether a row is open although its run was terminated, as it is until the next sweep."""
    return is_open and view is not None and view.status == TERMINATED


def outage_pairs(view: "RunView | None") -> list[tuple[str, object]]:
    """What stands first of a run that waits for a dependency: rows do not know it."""
    if view is None or view.waits_for is None:
        return []
    run = catalogue.OUTAGE_RUNS.recognise(view.waits_for)
    awaited = view.waits_for if run is None else f"the {label_of(run.key.dependency, run.key.name)}"
    return [
        ("state", state_text(WAITING)),
        ("waits for", f"{awaited}, by itself; `docflow show {view.waits_for}` says why"),
    ]


async def show_in_temporal(cli: CliContext, known: Run, *, as_json: bool) -> None:
    """Show a run of which only Temporal and its worker know.

    Raises:
        CommandError: There is no such run.
    """
    from workers.shared.services.runs import open_runs

    runs = await open_runs(cli.environment)
    view = await runs.look(known.workflow_id)
    if view is None:
        raise CommandError(f"there is no run {known.workflow_id}")
    status_type = known.kind.status
    status = status_type and await runs.query(known.workflow_id, "status", status_type)
    fields = {} if status is None else status.model_dump(mode="json")
    if as_json:
        print_json({"run": asdict(view), "status": fields or None})
        return
    shown: list[tuple[str, object]] = [
        ("run", view.workflow_id),
        *outage_pairs(view),
        ("in Temporal", view.status),
        ("link", view.link),
    ]
    shown += [(name.replace("_", " "), value) for name, value in fields.items()]
    console().print(pairs(shown))


@app.command()
def report(
    context: typer.Context,
    id: IdArgument,
    out: Annotated[
        Path | None, typer.Option(dir_okay=False, help="File to write [named after the run].")
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
    from workers.shared.services.known_runs import find, refuse_missing

    verbs, known = await find(id, cli.environment)
    refuse_missing(verbs, known, "report")
    async with verbs.report(cli.environment, known) as found:
        target = out or Path(Path(found.filename).name)
        with output_file(target, force=force) as partial:
            await found.download(partial)
    typer.echo(f"saved {target}: {found.sentence}")
