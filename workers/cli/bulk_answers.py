"""`docflow retry --all`: the same answer to many parked runs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from workers import catalogue
from workers.cli.context import CliContext
from workers.cli.errors import CommandError, Failure, UsageError, attempt
from workers.cli.output import is_interactive, print_json
from workers.cli.pipelines import by_name
from workers.cli.standard_output import require_standard_output
from workers.pipelines.base import Run
from workers.text import one_line

if TYPE_CHECKING:
    from workers.services.parked_runs import ParkedRuns


@dataclass(frozen=True)
class Selection:
    """Which parked runs are meant, and how the command goes about them."""

    pipeline: str | None = None
    document_type: str | None = None
    reason: str | None = None
    """Text of the reason for which they are parked."""
    dry_run: bool = False
    is_confirmed: bool = False


async def retry_all(cli: CliContext, selection: Selection, *, as_json: bool) -> None:
    """Count the parked runs, ask, and try each of them again.

    Nothing is retried before the count, or with `as_json` an empty line, has been written.

    Raises:
        UsageError: A question cannot be asked.
        CommandError: Some could not be retried.
    """
    from workers.services.parked_runs import find_parked, gathered
    from workers.services.runs import open_runs

    pipelines = by_name(selection.pipeline, catalogue.PIPELINES)
    if not (selection.is_confirmed or selection.dry_run):
        _require_questions(as_json=as_json)
    found = await find_parked(
        await open_runs(cli.environment),
        "retry",
        pipelines=pipelines,
        document_type=selection.document_type,
        reason=selection.reason,
    )
    if not as_json:
        _show_found(found, listed=selection.dry_run)
    if selection.dry_run or not found.runs:
        if as_json:
            _print(found, [])
        return
    if not selection.is_confirmed:
        typer.confirm(f"Retry {_numbered(found.runs)}?", abort=True)
    if as_json:
        require_standard_output()
    done = await gathered(found.runs, lambda run: attempt(_retry(cli, run)))
    failed = [
        (run, each.reason)
        for run, each in zip(found.runs, done, strict=True)
        if isinstance(each, Failure)
    ]
    for run, why in failed:
        typer.echo(one_line(f"{run.workflow_id}: {why}"), err=True)
    retried = len(found.runs) - len(failed)
    if as_json:
        _print(found, failed, retried=True)
    else:
        typer.echo(f"{retried} retried, {len(failed)} failed")
    if failed:
        raise CommandError(f"{len(failed)} of {_numbered(found.runs)} could not be retried")


def _require_questions(*, as_json: bool) -> None:
    """Refuse to ask where no person can answer."""
    if as_json:
        raise UsageError("--json asks no questions: add --yes, or --dry-run to see what there is")
    if not is_interactive():
        raise UsageError("there is no terminal to ask at: add --yes, or --dry-run to see them")


async def _retry(cli: CliContext, run: Run) -> None:
    from workers.services.known_runs import of
    from workers.services.verbs import AnswerRequest

    await of(run.pipeline).answer(cli.environment, run, AnswerRequest("retry", by=cli.user))


def _show_found(found: "ParkedRuns", *, listed: bool) -> None:
    counts = Counter(run.pipeline.name for run in found.runs)
    each = ", ".join(f"{name} {count}" for name, count in counts.items())
    typer.echo(f"{_numbered(found.runs)}{': ' if each else ''}{each}")
    if listed:
        for run in found.runs:
            typer.echo(run.workflow_id)
    for id in found.left_out:
        typer.echo(one_line(f"{id} is parked and offers no retry: left out"), err=True)


def _numbered(runs: Sequence[Run]) -> str:
    return f"{len(runs)} parked run{'' if len(runs) == 1 else 's'}"


def _print(
    found: "ParkedRuns", failed: Sequence[tuple[Run, str]], *, retried: bool = False
) -> None:
    why = {run.workflow_id: reason for run, reason in failed}
    ids = [run.workflow_id for run in found.runs]
    print_json(
        {
            "found": ids,
            "retried": [id for id in ids if id not in why] if retried else [],
            "failed": why,
            "left_out": list(found.left_out),
        }
    )
