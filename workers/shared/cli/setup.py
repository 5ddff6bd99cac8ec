"""`docflow setup`: makes what an installation needs, or says what is missing."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers import catalogue
from workers.shared.cli.context import CliContext, cli_context
from workers.shared.cli.errors import ExitCode, UsageError, run
from workers.shared.cli.output import JsonOption, print_json
from workers.shared.register import Pipeline
from workers.shared.text import one_line

if TYPE_CHECKING:
    from workers.shared.services.requirements import Result

app = typer.Typer(rich_markup_mode=None)

_NAME_WIDTH = 28
_STATE_WIDTH = 17

Names = Annotated[
    list[str] | None, typer.Argument(metavar="PIPELINE", help="These pipelines alone [all].")
]
CheckOption = Annotated[bool, typer.Option("--check", help="Change nothing.")]


@app.command()
def setup(
    context: typer.Context,
    names: Names = None,
    only_check: CheckOption = False,
    as_json: JsonOption = False,
) -> None:
    """Make what docflow needs of Temporal, the database, Azure and AWS, or say what is missing.

    Search attributes, schema, blob container, topic and queues. Nothing that exists is changed.
    Name the pipelines that you use, where they are not all. Exit code 1 when something is missing,
    or could not be made or checked.

    \b
    Examples:
      docflow setup
      docflow setup --check
      docflow setup PIPELINE
      docflow setup --check --json
    """
    run(_setup(cli_context(context), names or [], only_check=only_check, as_json=as_json))


async def _setup(
    context: CliContext, names: Sequence[str], *, only_check: bool, as_json: bool
) -> None:
    from workers.shared.connect import connect
    from workers.shared.services.setup import set_up
    from workers.shared.services.temporal_requirements import Connection
    from workers.shared.settings.check import check_settings
    from workers.shared.settings.common import BlobSettings, DatabaseSettings

    check_settings(context.environment, BlobSettings, DatabaseSettings)
    results: list[Result] = []
    asked = set_up(
        context.environment,
        Connection(connect),
        _chosen(names),
        only_check=only_check,
        leave_out=not names,
    )
    async for result in asked:
        results.append(result)
        if not as_json:
            typer.echo(_line(result))
    if as_json:
        print_json([_as_json(result) for result in results])
    if not all(result.is_there or not result.requirement.needed for result in results):
        raise typer.Exit(ExitCode.FAILED)


def _chosen(names: Sequence[str]) -> Sequence[Pipeline]:
    known = {pipeline.name: pipeline for pipeline in catalogue.PIPELINES}
    if unknown := sorted(set(names) - set(known)):
        raise UsageError(f"unknown pipeline {', '.join(unknown)}; known are {', '.join(known)}")
    return [known[name] for name in names or known]


def _line(result: "Result") -> str:
    name, state = result.requirement.name, result.finding.state
    warning = "" if result.is_there or result.requirement.needed else "warning: "
    details = one_line(result.details)
    return f"{name:<{_NAME_WIDTH}} {state:<{_STATE_WIDTH}} {warning}{details}"


def _as_json(result: "Result") -> dict[str, Any]:
    return {
        "name": result.requirement.name,
        "state": str(result.finding.state),
        "needed": result.requirement.needed,
        "details": result.details,
    }
