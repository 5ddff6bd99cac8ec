"""`docflow worker` and `docflow bridge`: the processes that do the work, from the catalogue."""

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer

from workers import catalogue
from workers.shared.cli.context import cli_context
from workers.shared.cli.errors import run
from workers.shared.register import Bridge, Pipeline

if TYPE_CHECKING:
    from workers.shared.bridges.consumer import BridgeTotals

_YOUNG_OBJECTS: Final = 50_000
"""New containers between two collections, until a worker tunes its own."""

HealthPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Serve /health/live and /health/ready."),
]
MetricsPort = Annotated[
    int | None, typer.Option(min=1, max=65535, help="Serve Prometheus metrics.")
]
WithBridge = Annotated[
    bool,
    typer.Option("--with-bridge", help="Receive messages in this process too; runs start faster."),
]

_LANE: Final = ("--lane", "--queue")
_HINT: Final = " / ".join(_LANE)
OneLane = Annotated[
    str | None,
    typer.Option(*_LANE, help="Serve this task queue alone, of those beside its own."),
]
Drain = Annotated[bool, typer.Option("--drain", help="Stop when the queue stays empty.")]


def worker_commands() -> typer.Typer:
    """`docflow worker`: one command per pipeline, and one for all."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    for pipeline in catalogue.PIPELINES:
        has_bridge = any(bridge.with_worker for bridge in pipeline.bridges)
        command = _worker(pipeline, has_bridge=has_bridge)
        app.command(pipeline.name, help=_worker_help(pipeline, has_bridge=has_bridge))(command)
    app.command("all", help=_all_help())(_worker(None, has_bridge=True))
    return app


def bridge_commands() -> typer.Typer:
    """`docflow bridge`: one command per bridge of every pipeline."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        # One command alone would take the place of the group.
        callback=lambda: None,
    )
    for pipeline in catalogue.PIPELINES:
        for bridge in pipeline.bridges:
            app.command(bridge.name, help=_bridge_help(bridge))(_bridge(bridge))
            for former in bridge.former_names:
                old = _with_examples(
                    f"The former name of `docflow bridge {bridge.name}`.",
                    f"docflow bridge {former}",
                )
                app.command(former, help=old, hidden=True)(_former_bridge(bridge, former))
    return app


def _worker(pipeline: Pipeline | None, *, has_bridge: bool) -> Callable[..., None]:
    """The command of a pipeline's worker, with the options that it has; None: of all."""
    names = None if pipeline is None else [pipeline.name]

    def with_both(
        context: typer.Context,
        with_bridge: WithBridge = False,
        lane: OneLane = None,
        health_port: HealthPort = None,
        metrics_port: MetricsPort = None,
    ) -> None:
        if with_bridge and lane is not None:
            raise typer.BadParameter("a lane has no bridge", param_hint=_HINT)
        known = None if lane is None else _lane_names(context, pipeline)
        if known is not None and lane not in known:
            raise typer.BadParameter(f"{lane!r} is none of {', '.join(known)}", param_hint=_HINT)
        from workers.shared.process import run_worker

        environment = _environment(context)
        start_logs(environment)
        run(
            run_worker(
                names,
                environment,
                with_bridge=with_bridge,
                lane=lane,
                health_port=health_port,
                metrics_port=metrics_port,
            )
        )

    def with_bridge(
        context: typer.Context,
        with_bridge: WithBridge = False,
        health_port: HealthPort = None,
        metrics_port: MetricsPort = None,
    ) -> None:
        with_both(context, with_bridge, None, health_port, metrics_port)

    def with_lanes(
        context: typer.Context,
        lane: OneLane = None,
        health_port: HealthPort = None,
        metrics_port: MetricsPort = None,
    ) -> None:
        with_both(context, False, lane, health_port, metrics_port)

    def without(
        context: typer.Context,
        health_port: HealthPort = None,
        metrics_port: MetricsPort = None,
    ) -> None:
        with_both(context, False, None, health_port, metrics_port)

    has_lanes = pipeline is not None and pipeline.has_lanes
    if has_lanes:
        return with_both if has_bridge else with_lanes
    return with_bridge if has_bridge else without


def _lane_names(context: typer.Context, pipeline: Pipeline | None) -> Sequence[str] | None:
    """None: settings that name some are wrong, which the worker says with all others."""
    from workers.shared.errors import SettingsError

    try:
        lanes = () if pipeline is None else pipeline.lanes_in(_environment(context))
    except SettingsError:
        return None
    return [each.name for each in lanes]


def _worker_help(pipeline: Pipeline, *, has_bridge: bool) -> str:
    bridge = " --with-bridge" if has_bridge else ""
    return _with_examples(
        pipeline.worker_help,
        f"docflow worker {pipeline.name}{bridge}",
        f"docflow worker {pipeline.name} --health-port 8080 --metrics-port 9090",
        *(f"docflow worker {pipeline.name} --lane {lane.name}" for lane in pipeline.lanes[-1:]),
    )


def _all_help() -> str:
    optional = "".join(
        f"; on {pipeline.name} when {pipeline.enabled_by} is set"
        for pipeline in catalogue.PIPELINES
        if pipeline.enabled_by
    )
    return _with_examples(
        f"Work on every pipeline in one process{optional}.",
        "docflow worker all --with-bridge --health-port 8080",
    )


def _bridge_help(bridge: Bridge) -> str:
    command = f"docflow bridge {bridge.name}"
    return _with_examples(
        bridge.help, command, f"{command} --drain", f"{command} --health-port 8080"
    )


def _with_examples(sentence: str, *examples: str) -> str:
    lines = "\n".join(f"  {example}" for example in examples)
    return f"{sentence}\n\n\b\nExample{'s' * (len(examples) > 1)}:\n{lines}\n"


def _environment(context: typer.Context) -> Mapping[str, str]:
    """The settings of this invocation."""
    return cli_context(context).environment


def _bridge(bridge: Bridge) -> Callable[..., None]:
    def command(
        context: typer.Context,
        drain: Drain = False,
        health_port: HealthPort = None,
        metrics_port: MetricsPort = None,
    ) -> None:
        from workers.shared.process import run_bridge

        environment = cli_context(context).environment
        start_logs(environment)
        working = run_bridge(
            bridge, environment, drain=drain, health_port=health_port, metrics_port=metrics_port
        )
        _print_totals(run(working))

    return command


def _former_bridge(bridge: Bridge, former: str) -> Callable[..., None]:
    command = _bridge(bridge)

    def renamed(
        context: typer.Context,
        drain: Drain = False,
        health_port: HealthPort = None,
        metrics_port: MetricsPort = None,
    ) -> None:
        typer.echo(
            f"warning: `docflow bridge {former}` is now `docflow bridge {bridge.name}`; "
            "the old name will be removed",
            err=True,
        )
        command(context, drain, health_port, metrics_port)

    return renamed


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
