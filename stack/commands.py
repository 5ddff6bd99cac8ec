"""`docflow stack` and `docflow demo`, which reach the command tree by an entry point."""

import asyncio
import os
import shlex
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stack.demo import command as demo
from workers.shared.cli.errors import CommandError, UsageError, run

if TYPE_CHECKING:
    from stack.embedded import EmbeddedStack

_PORT_HELP = "0 for that of the last start, or a free one."

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Parts of the embedded stack, for development and tests.",
)
commands = typer.Typer(rich_markup_mode=None)
commands.add_typer(app, name="stack")
commands.add_typer(demo.app)


@app.command("service-bus")
def service_bus(
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:lock=SECONDS,max=COUNT]", help="May be repeated [import-queue]."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 5672,
    messages: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keeps the messages [they live in memory]."),
    ] = None,
) -> None:
    """Run the Service Bus emulator on loopback until it is interrupted.

    It prints the connection string to use.

    \b
    Example:
      docflow stack service-bus --port 5672 --queue import-queue:lock=30,max=10
    """
    run(_service_bus(queue or ["import-queue"], port, messages))


async def _service_bus(descriptions: list[str], port: int, messages: Path | None) -> None:
    import sqlite3

    from emulators.service_bus import parse_queue, serve

    try:
        queues = [parse_queue(description) for description in descriptions]
    except ValueError as error:
        raise UsageError(f"--queue: {error}") from error
    names = [queue.name for queue in queues]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"--queue: {', '.join(twice)} is named twice")
    try:
        await serve(queues, port=port, announce=_announce, messages=messages)
    except OSError as error:
        raise CommandError(
            f"cannot listen on port {port}: {os.strerror(error.errno or 0)}; "
            "choose another with --port"
        ) from error
    except sqlite3.DatabaseError as error:
        raise CommandError(f"--messages: cannot use {messages}: {error}") from error


def _announce(connection_string: str) -> None:
    typer.echo(f"AZURE_SERVICE_BUS_CONNECTION_STRING='{connection_string}'")


@app.command("up")
def up(
    folder: Annotated[Path, typer.Option(help="Where everything durable lies.")] = Path(
        ".docflow/dev"
    ),
    temporal_port: Annotated[int, typer.Option(min=0, max=65535, help=_PORT_HELP)] = 0,
    ui_port: Annotated[int, typer.Option(min=0, max=65535, help=_PORT_HELP)] = 0,
    gateway_port: Annotated[int, typer.Option(min=0, max=65535, help=_PORT_HELP)] = 0,
) -> None:
    """Run everything on loopback until Ctrl-C: Temporal, PostgreSQL, Service Bus, a worker.

    A part that ends is started again, and each start in a folder takes the same ports.

    It writes the settings to FOLDER/env, to be sourced by the shell that sends documents while the
    stack runs, and prints a link that signs a browser in. A folder takes one stack at a time.

    \b
    Example:
      docflow stack up
      . .docflow/dev/env; docflow import submit samples/equipment.csv --type equipment --project P1
    """
    run(_up(folder, temporal_port, ui_port, gateway_port))


async def _up(folder: Path, temporal_port: int, ui_port: int, gateway_port: int) -> None:
    from stack.embedded import embedded_stack
    from stack.folders import stack_folder

    settings = folder / "env"
    with _stopped_by_sigterm(), stack_folder(folder):
        # One that was killed leaves its own behind.
        settings.unlink(missing_ok=True)
        try:
            async with embedded_stack(
                folder,
                announce=typer.echo,
                patient=True,
                temporal_port=temporal_port or None,
                ui_port=ui_port or None,
                gateway_port=gateway_port or None,
                with_partners=True,
            ) as stack:
                _write_settings(settings, stack.settings)
                _describe(stack, settings)
                await stack.keep_working()
        finally:
            settings.unlink(missing_ok=True)


@contextmanager
def _stopped_by_sigterm() -> Generator[None]:
    """Let SIGTERM end the block in order, with the exit code that shells give such a process."""
    task = asyncio.current_task()
    assert task is not None
    terminated = asyncio.Event()

    def stop() -> None:
        terminated.set()
        task.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        yield
    except asyncio.CancelledError:
        if not terminated.is_set():
            raise
        raise typer.Exit(128 + signal.SIGTERM) from None
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _describe(stack: "EmbeddedStack", settings: Path) -> None:
    typer.echo(f"gateway    {stack.gateway_url}")
    typer.echo(f"sign in    {stack.sign_in_url()}")
    typer.echo(f"token      {stack.token()}")
    typer.echo(f"Web UI     {stack.temporal.ui_url}")
    typer.echo(f"health     {stack.health_url}/health/ready")
    typer.echo(f"logs       {stack.folder}/*.log")
    typer.echo(f"settings   . {settings}")
    typer.echo("running until Ctrl-C")


def _write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Write a file for the shell; it holds the key of tokens, so that no other user may read it."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        for name, value in settings.items():
            opened.write(f"export {name}={shlex.quote(value)}\n")
