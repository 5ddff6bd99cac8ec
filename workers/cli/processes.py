"""`docflow worker` and `docflow bridge`: the processes that do the work."""

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.context import cli_context
from workers.cli.errors import run

if TYPE_CHECKING:
    from workers.bridges.totals import BridgeTotals

worker = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Run workers until SIGTERM or Ctrl-C."
)
bridge = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Run what turns messages into runs."
)

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

Drain = Annotated[bool, typer.Option("--drain", help="Stop when the queue stays empty.")]


@worker.command("imports")
def worker_imports(
    context: typer.Context,
    with_bridge: WithBridge = False,
    health_port: HealthPort = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Work on document imports.

    \b
    Examples:
      docflow worker imports --with-bridge
      docflow worker imports --health-port 8080 --metrics-port 9090
    """
    _run_worker(context, ["imports"], with_bridge, health_port, metrics_port)


@worker.command("spreadsheets")
def worker_spreadsheets(
    context: typer.Context, health_port: HealthPort = None, metrics_port: MetricsPort = None
) -> None:
    """Work on spreadsheet imports, and look after their schedules.

    \b
    Example:
      docflow worker spreadsheets --health-port 8080
    """
    _run_worker(context, ["spreadsheets"], False, health_port, metrics_port)


@worker.command("batches")
def worker_batches(
    context: typer.Context,
    with_bridge: WithBridge = False,
    health_port: HealthPort = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Work on batches and their documents, and look after their schedules.

    \b
    Examples:
      docflow worker batches
      docflow worker batches --with-bridge --health-port 8080
    """
    _run_worker(context, ["batches"], with_bridge, health_port, metrics_port)


@worker.command("all")
def worker_all(
    context: typer.Context,
    with_bridge: WithBridge = False,
    health_port: HealthPort = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Work on every pipeline in one process; on batches when DOCFLOW_BATCH_TOPIC_ARN is set.

    \b
    Example:
      docflow worker all --with-bridge --health-port 8080
    """
    from workers.batch_settings import BatchSettings
    from workers.catalogue import CATALOGUE

    pipelines = list(CATALOGUE)
    if not BatchSettings.given(cli_context(context).environment):
        pipelines.remove("batches")
    _run_worker(context, pipelines, with_bridge, health_port, metrics_port)


def _run_worker(
    context: typer.Context,
    pipelines: list[str],
    with_bridge: bool,
    health_port: int | None,
    metrics_port: int | None,
) -> None:
    from workers.process import run_worker

    log_to_stderr()
    run(
        run_worker(
            pipelines,
            cli_context(context).environment,
            with_bridge=with_bridge,
            health_port=health_port,
            metrics_port=metrics_port,
        )
    )


@bridge.command("service-bus")
def bridge_service_bus(context: typer.Context, drain: Drain = False) -> None:
    """Receive import messages from Service Bus and start their runs.

    \b
    Examples:
      docflow bridge service-bus
      docflow bridge service-bus --drain
    """
    from workers.process import run_bridge

    log_to_stderr()
    _tell(run(run_bridge(cli_context(context).environment, drain=drain)))


@bridge.command("jobs", hidden=True)
def bridge_jobs(context: typer.Context, drain: Drain = False) -> None:
    """The former name of `docflow bridge case-events`.

    \b
    Example:
      docflow bridge jobs --drain
    """
    typer.echo(
        "warning: `docflow bridge jobs` is now `docflow bridge case-events`; "
        "the old name will be removed",
        err=True,
    )
    bridge_case_events(context, drain)


@bridge.command("case-events")
def bridge_case_events(context: typer.Context, drain: Drain = False) -> None:
    """Receive events of batches from the case-events queue and hand them to their cases.

    \b
    Examples:
      docflow bridge case-events
      docflow bridge case-events --drain
    """
    from workers.process import run_case_events

    log_to_stderr()
    _tell(run(run_case_events(cli_context(context).environment, drain=drain)))


@bridge.command("batch-loader")
def bridge_batch_loader(context: typer.Context, drain: Drain = False) -> None:
    """Receive documents from the queues of batches, where there is no function to do it.

    \b
    Examples:
      docflow bridge batch-loader
      docflow bridge batch-loader --drain
    """
    from workers.process import run_loader

    log_to_stderr()
    _tell(run(run_loader(cli_context(context).environment, drain=drain)))


def _tell(totals: "BridgeTotals") -> None:
    typer.echo(
        f"{totals.received} received: {totals.settled} settled, "
        f"{totals.dead_lettered} dead-lettered, {totals.abandoned} abandoned"
    )


def log_to_stderr() -> None:
    """What a process does, for whoever keeps its output."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    # These tell at INFO of every link and retry, and of every look at the schema.
    for name in ("azure", "alembic", "botocore", "aiobotocore"):
        logging.getLogger(name).setLevel(logging.WARNING)
