"""What is up, and what waits for a person, of every pipeline: what `docflow status` shows."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import typer

from workers import catalogue
from workers.shared.cli.context import CliContext
from workers.shared.cli.errors import ExitCode, Failure, attempt
from workers.shared.cli.output import (
    console,
    moment,
    print_json,
    state_text,
    table,
    text,
)
from workers.shared.register import Check, Pipeline, PipelineView, load
from workers.shared.services.status import check_of
from workflows.shared.runs import RunRecord

if TYPE_CHECKING:
    from workers.shared.services.outages import OutageView
    from workers.shared.services.runs import TemporalRuns

    _Runs = TemporalRuns | Failure

SHOWN: Final = 10
"""Runs that wait for a person, of each pipeline."""


@dataclass(frozen=True)
class _Seen:
    """What was found out about one pipeline."""

    pipeline: Pipeline
    view: PipelineView | None = None
    checks: Sequence[Check] = ()
    awaiting: Sequence[RunRecord] = ()


async def show_status(context: CliContext, *, as_json: bool) -> None:
    """Ask Temporal, the database and what each pipeline uses, and show what they say.

    Raises:
        typer.Exit: Something is down, or an outage is open.
    """
    runs, database = await asyncio.gather(attempt(context.runs()), _database(context))
    seen = await asyncio.gather(
        *(_pipeline(context, pipeline, runs) for pipeline in catalogue.PIPELINES)
    )
    outages = await _outages(runs)
    checks = [
        Check("Temporal", False, runs.reason)
        if isinstance(runs, Failure)
        else Check("Temporal", True, runs.place),
        database,
        *(Check(each.workflow_id, False, each.sentence) for each in outages),
        *(check for each in seen for check in each.checks),
    ]
    if as_json:
        print_json(_as_json(checks, seen, outages))
    else:
        _show(checks, seen)
    if not all(check.up for check in checks):
        raise typer.Exit(ExitCode.FAILED)


async def _database(context: CliContext) -> Check:
    async def opened() -> None:
        async with context.tables():
            pass

    failed = await attempt(opened())
    if isinstance(failed, Failure):
        return Check("database", False, failed.reason)
    return Check("database", True, "schema is current")


async def _outages(runs: "_Runs") -> "Sequence[OutageView]":
    """Where Temporal cannot be asked for them, it has a check of its own."""
    from workers.shared.services.outages import open_outages

    found = runs if isinstance(runs, Failure) else await attempt(open_outages(runs))
    return () if isinstance(found, Failure) else found


async def _pipeline(context: CliContext, pipeline: Pipeline, runs: "_Runs") -> _Seen:
    view, awaiting, further = await asyncio.gather(
        _view(runs, pipeline), _awaiting(context, pipeline), _further(context, pipeline)
    )
    checks: list[Check] = []
    if isinstance(view, Failure):
        checks.append(Check(pipeline.name, False, view.reason))
    elif view is not None:
        checks.append(check_of(pipeline, view))
    found = view if isinstance(view, PipelineView) else None
    return _Seen(pipeline, found, [*checks, *further], awaiting)


async def _view(runs: "_Runs", pipeline: Pipeline) -> PipelineView | Failure | None:
    """None: Temporal is down, which is reported once for all pipelines."""
    return None if isinstance(runs, Failure) else await attempt(runs.pipeline(pipeline))


async def _awaiting(context: CliContext, pipeline: Pipeline) -> Sequence[RunRecord]:
    """The runs that wait for a person, the longest wait first.

    Whatever cannot be reached for them has a check of its own.
    """
    from workers.shared.services.known_runs import awaiting

    found = await attempt(awaiting(context.environment, pipeline, SHOWN))
    return () if isinstance(found, Failure) else [*reversed(found)]


async def _further(context: CliContext, pipeline: Pipeline) -> Sequence[Check]:
    return () if pipeline.checks is None else await load(pipeline.checks)(context)


def _as_json(
    checks: Sequence[Check], seen: Sequence[_Seen], outages: "Sequence[OutageView]"
) -> Mapping[str, Any]:
    awaiting = [run for each in seen for run in each.awaiting]
    counts = Counter[str]()
    for each in seen:
        for state, number in each.view.counts.items() if each.view else ():
            counts[state] += number
    return {
        "checks": [asdict(check) for check in checks],
        "counts": counts,
        "outages": [{**asdict(each), "since": each.since.isoformat()} for each in outages],
        "needs_attention": [run.model_dump(mode="json") for run in awaiting],
        "pipelines": {each.pipeline.name: each.view and asdict(each.view) for each in seen},
    }


def _show(checks: Sequence[Check], seen: Sequence[_Seen]) -> None:
    out = console()
    parts = table("part", "state", "details")
    for check in checks:
        is_up = text("up", "green") if check.up else text("down", "bold red")
        parts.add_row(text(check.part), is_up, text(check.says))
    out.print(parts)
    for each in seen:
        if each.view is not None and any(each.view.counts.values()):
            out.print(_counts(each.pipeline, each.view))
    awaiting = [run for each in seen for run in each.awaiting]
    if awaiting:
        from workers.shared.services.known_runs import name_of

        waiting = table("waits for you", "of", "type", "state", "since", "reason")
        for each in awaiting:
            waiting.add_row(
                text(name_of(each)),
                text(each.pipeline),
                text(each.kind),
                state_text(each.own_state),
                text(moment(each.changed_at)),
                text(each.reason),
            )
        out.print(waiting)
        typer.echo(
            "docflow retry | skip | fail ID answers one that is parked; "
            "`docflow list --needs-attention` shows all"
        )


def _counts(pipeline: Pipeline, view: PipelineView) -> Any:
    made = table(pipeline.name, "number", numbers=["number"])
    for state, number in view.counts.items():
        made.add_row(state_text(state), text(f"{number:,}"))
    return made
