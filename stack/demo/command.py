"""`docflow demo`: every pipeline over the samples."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from workers.shared.cli.errors import CommandError, run

app = typer.Typer(rich_markup_mode=None)


@app.command("demo")
def demo(
    samples: Annotated[Path, typer.Option(help="Folder with demo.json and its files.")] = Path(
        "samples"
    ),
    folder: Annotated[
        Path,
        typer.Option(
            help="Where the demo's stack lives; emptied first, and refused when it has files that "
            "are not the demo's."
        ),
    ] = Path(".docflow/demo"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the stack up until Ctrl-C, to look around.")
    ] = False,
) -> None:
    """Start a stack, process every sample, compare the outcome, stop the stack.

    \b
    Example:
      docflow demo --keep
    """
    raise typer.Exit(run(_demo(samples, folder, keep)))


async def _demo(samples: Path, folder: Path, keep: bool) -> int:
    from rich.console import Console

    from stack.demo.run import run_demo
    from stack.demo.table import WIDE

    if not (samples / "demo.json").is_file():
        raise CommandError(
            f"there is no {samples / 'demo.json'}; run this in a checkout of docflow, "
            "or name its folder with --samples"
        )
    # A file or a pipe has no width to respect, and a link that is cut off is none.
    console = Console() if sys.stdout.isatty() else Console(width=WIDE)
    return await run_demo(samples, folder, console, keep=keep)
