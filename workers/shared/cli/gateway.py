"""`docflow gateway`: the web side."""

from collections.abc import Mapping
from typing import Annotated

import typer

from workers.shared.cli.context import cli_context
from workers.shared.cli.errors import run
from workers.shared.cli.processes import MetricsPort, start_logs

app = typer.Typer(rich_markup_mode=None)


@app.command()
def gateway(
    context: typer.Context,
    host: Annotated[
        str | None,
        typer.Option(help="Name or address to listen on [DOCFLOW_HTTP_HOST or 127.0.0.1]."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    metrics_port: MetricsPort = None,
) -> None:
    """Serve the HTTP API, the mapping pages and the inbox until SIGTERM or Ctrl-C.

    It keeps no state: run as many as you like behind a balancer. Tokens are accepted as
    DOCFLOW_JWT_KEY or DOCFLOW_JWT_JWKS_URL determine.

    \b
    Examples:
      docflow gateway
      docflow gateway --host 0.0.0.0 --port 8080
    """
    start_logs(cli_context(context).environment)
    run(_serve(cli_context(context).environment, host, port, metrics_port))


async def _serve(
    environment: Mapping[str, str], host: str | None, port: int, metrics_port: int | None
) -> None:
    from workers.shared.gateway.process import run_gateway
    from workers.shared.settings.common import HttpSettings

    await run_gateway(
        environment,
        host=host or HttpSettings.read(environment).host,
        port=port,
        metrics_port=metrics_port,
    )
