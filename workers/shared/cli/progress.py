"""A bar on stderr while a command sends a file, or waits for a run."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from workers.shared.cli.errors import UsageError
from workers.shared.cli.output import console
from workers.shared.text import visible

if TYPE_CHECKING:
    from docflow.client.protocol import SentFile


class Shown(Protocol):
    """Shows how far something is."""

    def __call__(self, done: int = 0, total: int | None = None, *, said: str = "") -> None:
        """Move the bar, if the end is known, and say something beside it."""
        ...


@contextmanager
def progress(title: str) -> Generator[Shown]:
    """A bar until the block ends; nothing, if stderr is no terminal."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    out = console(stderr=True)
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[said]}", markup=False),
        TimeElapsedColumn(),
        console=out,
        transient=True,
        disable=not out.is_terminal,
    )
    task = bar.add_task(visible(title), total=None, said="")

    def show(done: int = 0, total: int | None = None, *, said: str = "") -> None:
        bar.update(task, completed=done, total=total, said=visible(said))

    with bar:
        yield show


@contextmanager
def sent(file: Path) -> Generator["SentFile"]:
    """A file that is sent within the block, with a bar.

    Raises:
        UsageError: It cannot be read.
    """
    from docflow.client.protocol import SentFile

    try:
        content = file.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    with content, progress(f"sending {file.name}") as shown:
        yield SentFile(content, file.name[-255:], shown)
