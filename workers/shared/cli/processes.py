"""`docflow worker` and `docflow bridge`: the processes that do the work, from the catalogue."""

import gc
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from workers.shared.cli.context import cli_context
from workers.shared.cli.errors import ExitCode, UsageError, run, stop

if TYPE_CHECKING:
    from workers.shared.bridges.consumer import BridgeTotals
    from workers.shared.register import Pipeline

_YOUNG_OBJECTS: Final = 50_000
"""New containers between two collections, until a worker tunes its own."""
_ALL: Final = "all"
_LANE: Final = ("--lane", "--queue")
_HINT: Final = " / ".join(_LANE)

HealthPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Serve /health/live and /health/ready."),
]
MetricsPort = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Serve Prometheus metrics.")
]
worker_app = typer.Typer(rich_markup_mode=None)
bridge_app = typer.Typer(rich_markup_mode=None)


@worker_app.command()
def worker(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="PIPELINE", help="Name of the pipeline, or all [lists them]."),
    ] = None,
    with_bridge: Annotated[
        bool,
        typer.Option(
            "--with-bridge", help="Receive messages in this process too; runs start faster."
        ),
    ] = False,
    lane: Annotated[
        str | None,
        typer.Option(*_LANE, help="Serve this task queue alone, of those beside its own."),
    ] = None,
    health_port: HealthPort = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Work on the runs of a pipeline, or of all, until SIGTERM or Ctrl-C.

    \b
    Examples:
      docflow worker
      docflow worker PIPELINE --health-port 8080 --metrics-port 9090
      docflow worker PIPELINE --lane heavy
      docflow worker all --with-bridge --health-port 8080
    """
    from workers import catalogue

    known = {each.name: each for each in catalogue.PIPELINES}
    if name is None or name not in (*known, _ALL):
        helps = {each: pipeline.worker_help for each, pipeline in known.items()}
        _choose("pipeline", name, {**helps, _ALL: _all_help()})
    pipeline = known.get(name)
    environment = cli_context(context).environment
    if problem := _unfit(pipeline, environment, lane, with_bridge=with_bridge):
        stop(UsageError(problem))
    from workers.shared.process import run_worker

    start_logs(environment)
    run(
        run_worker(
            None if pipeline is None else [pipeline.name],
            environment,
            with_bridge=with_bridge,
            lane=lane,
            health_port=health_port,
            metrics_port=metrics_port,
        )
    )


def _all_help() -> str:
    from workers import catalogue

    optional = "".join(
        f"; on {pipeline.name} when {pipeline.enabled_by} is set"
        for pipeline in catalogue.PIPELINES
        if pipeline.enabled_by
    )
    return f"Work on every pipeline in one process{optional}."


def _choose(what: str, name: str | None, helps: Mapping[str, str]) -> NoReturn:
    """End with what there is to choose from."""
    typer.echo(f"docflow: {f'there is no {what} {name}' if name else f'name a {what}'}:", err=True)
    width = max(map(len, helps))
    for each, help in helps.items():
        typer.echo(f"  {each:<{width}}  {help}", err=True)
    raise typer.Exit(ExitCode.USAGE)


def _unfit(
    pipeline: "Pipeline | None",
    environment: Mapping[str, str],
    lane: str | None,
    *,
    with_bridge: bool,
) -> str | None:
    """Why a pipeline, or all, has not what it needs or what an option asks for; None: it has."""
    from workers.shared.errors import SettingsError

    if missing := _without_libraries(pipeline, environment):
        extras = ",".join(missing)
        return (
            f"the libraries of {' and '.join(missing)} are not installed: install "
            f"'docflow[{extras}]', or take the image of workers"
        )
    if lane is not None and with_bridge:
        return f"{_HINT} and --with-bridge do not go together: a lane has no bridge"
    if with_bridge and pipeline is not None:
        has_bridge = any(bridge.with_worker for bridge in pipeline.bridges)
        return None if has_bridge else f"--with-bridge: {pipeline.name} has no bridge"
    if lane is None:
        return None
    if pipeline is None or not pipeline.has_lanes:
        return f"{_HINT}: {_ALL if pipeline is None else pipeline.name} has no lanes"
    try:
        lanes = [each.name for each in pipeline.lanes_in(environment)]
    except SettingsError:
        # The worker reports it with all other settings that are wrong.
        return None
    return None if lane in lanes else f"{_HINT}: {lane!r} is none of {', '.join(lanes)}"


def _without_libraries(
    pipeline: "Pipeline | None", environment: Mapping[str, str]
) -> Sequence[str]:
    """Those of the pipelines that a worker would work on whose extra is not installed."""
    from workers import catalogue

    enabled = (each for each in catalogue.PIPELINES if each.left_out(environment) is None)
    worked_on = [pipeline] if pipeline else [*enabled]
    return [
        each.name
        for each in worked_on
        if any(find_spec(module) is None for module in each.libraries)
    ]


@bridge_app.command()
def bridge(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="BRIDGE", help="Name of the bridge [lists them].")
    ] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="Stop when the queue stays empty.")
    ] = False,
    health_port: HealthPort = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Receive the messages of a queue and start a run for each, until SIGTERM or Ctrl-C.

    \b
    Examples:
      docflow bridge
      docflow bridge BRIDGE --drain
      docflow bridge BRIDGE --health-port 8080
    """
    from workers import catalogue

    known = {each.name: each for pipeline in catalogue.PIPELINES for each in pipeline.bridges}
    if name is None or name not in known:
        _choose("bridge", name, {each: one.help for each, one in known.items()})
    from workers.shared.process import run_bridge

    environment = cli_context(context).environment
    start_logs(environment)
    working = run_bridge(
        known[name],
        environment,
        drain=drain,
        health_port=health_port,
        metrics_port=metrics_port,
    )
    _print_totals(run(working))


def _print_totals(totals: "BridgeTotals") -> None:
    typer.echo(
        f"{totals.received} received: {totals.settled} settled, "
        f"{totals.dead_lettered} dead-lettered, {totals.abandoned} abandoned"
    )


def start_logs(environment: Mapping[str, str]) -> None:
    """Log what a process does to its output; from now on it may live for long.

    A format that is unknown is named with all other settings that are wrong; until then lines are
    text.
    """
    from workers.shared.logs import configure_logs
    from workers.shared.settings.common import LogSettings

    # What was imported is no garbage: looking through it once takes a tenth of a second.
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 10, 10)
    if LogSettings.problems(environment):
        wrong = {name for each in LogSettings.declared() for name in each.names}
        environment = {name: text for name, text in environment.items() if name not in wrong}
    configure_logs(environment)
