"""`docflow dev` and `docflow demo`, which reach the command tree by an entry point."""

import asyncio
import os
import shlex
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from stack.demo import command as demo
from workers.shared.cli.errors import run

if TYPE_CHECKING:
    from stack.embedded import EmbeddedStack

_PORTS: Final = {"temporal": 7233, "ui": 8233, "gateway": 8000}
"""Those of a first start, if they are free."""
_CONTEXT: Final = "dev"


def _port_help(name: str) -> str:
    return f"0 for that of the last start, or {_PORTS[name]} if it is free."


commands = typer.Typer(rich_markup_mode=None)
commands.add_typer(demo.app)


@commands.command("dev")
def dev(
    folder: Annotated[Path, typer.Option(help="Where everything durable lies.")] = Path(
        ".docflow/dev"
    ),
    temporal_port: Annotated[int, typer.Option(min=0, max=65535, help=_port_help("temporal"))] = 0,
    ui_port: Annotated[int, typer.Option(min=0, max=65535, help=_port_help("ui"))] = 0,
    gateway_port: Annotated[int, typer.Option(min=0, max=65535, help=_port_help("gateway"))] = 0,
) -> None:
    """Run everything on loopback until Ctrl-C: Temporal, PostgreSQL, Service Bus, a worker.

    Commands are logged in meanwhile, as context dev. A part that ends is started again, and each
    start in a folder takes the same ports. A folder takes one stack at a time.

    It prints a link that signs a browser in, and writes the settings to FOLDER/env, to be sourced
    by a shell that starts processes of its own.

    \b
    Example:
      docflow dev
      docflow import submit samples/equipment.csv --type equipment --project P1
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
                preferred_ports=_PORTS,
                with_partners=True,
            ) as stack:
                _write_settings(settings, stack.settings)
                with _logged_in(stack) as login:
                    _describe(stack, settings, login)
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


@contextmanager
def _logged_in(stack: "EmbeddedStack") -> Generator[str]:
    """Log commands of this person in, until the block ends; what a context was before counts again.

    Yields:
        What to say about it.
    """
    from docflow.client.contexts import CONTEXT, Context, Contexts
    from docflow.client.errors import NotConfigured

    own = Context(stack.settings["DOCFLOW_ADDRESS"], stack.settings["DOCFLOW_TOKEN"])
    # One that the environment names counts for a shell, and is not in the file.
    contexts = Contexts({name: value for name, value in os.environ.items() if name != CONTEXT})
    try:
        before = contexts.current
        contexts.keep(_CONTEXT, own)
    except (NotConfigured, OSError) as error:
        yield f"not logged in: {error}"
        return
    try:
        yield f"logged in as context {_CONTEXT}"
    finally:
        # Another stack may have logged in meanwhile.
        if contexts.all().get(_CONTEXT) == own:
            is_current = contexts.current == _CONTEXT
            contexts.remove(_CONTEXT)
            if is_current and before is not None and before in contexts.all():
                contexts.use(before)


def _describe(stack: "EmbeddedStack", settings: Path, login: str) -> None:
    typer.echo(f"gateway    {stack.gateway_url}")
    typer.echo(f"sign in    {stack.sign_in_url()}")
    typer.echo(f"token      {stack.token()}")
    typer.echo(f"Web UI     {stack.temporal.ui_url}")
    typer.echo(f"health     {stack.health_url}/health/ready")
    typer.echo(f"logs       {stack.folder}/*.log")
    typer.echo(f"settings   . {settings}")
    typer.echo(f"commands   {login}")
    typer.echo("running until Ctrl-C")


def _write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Write a file for the shell; it holds the key of tokens, so that no other user may read it."""
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        for name, value in settings.items():
            opened.write(f"export {name}={shlex.quote(value)}\n")
