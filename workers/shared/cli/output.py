"""How commands show things: tables for people, JSON for programs, files."""

import json
import os
import stat
import sys
import uuid
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workers.shared.cli.errors import CommandError, ExitCode, UsageError
from workers.shared.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from workflows.shared.contracts import Problem


@contextmanager
def output_file(target: Path, *, force: bool) -> Generator[Path]:
    """Yield a new file beside `target`, which takes its place when the block succeeds.

    Args:
        target: File to write.
        force: Replace a file that exists.

    Raises:
        UsageError: There is something at `target` that is not to be replaced.
        CommandError: The file cannot be written; nothing is left behind.
    """
    partial = target.parent / f".docflow-{uuid.uuid4().hex}.part"
    try:
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            raise UsageError(f"{target} is not a file; name another one with --out")
        if mode is not None and not force:
            raise UsageError(f"{target} exists; name another file with --out, or add --force")
        partial.touch(exist_ok=False)
        yield partial
        os.replace(partial, target)
    except OSError as error:
        reason = f"cannot write {target}: {error.strerror}"
        raise CommandError(reason, ExitCode.NOT_WRITTEN) from error
    finally:
        # In a folder that takes no files there is none to remove.
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _mode(target: Path) -> int | None:
    """Type and permissions; None: nothing is there.

    `Path.exists` says since Python 3.14 that nothing is there where it could not look.
    """
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        return None


def read_body(file: Path) -> bytes:
    """The bytes of a message file.

    Raises:
        UsageError: It cannot be read, or is larger than a message may be.
    """
    from workflows.imports.messages import MESSAGE_BYTES

    try:
        with file.open("rb") as opened:
            body = opened.read(MESSAGE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    if len(body) > MESSAGE_BYTES:
        raise UsageError(
            f"{file} is over {MESSAGE_BYTES // 1024} KiB, more than a message may have"
        )
    return body


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

WIDTH_OF_A_PIPE = 200
"""Columns of a table that does not go to a terminal, so that ids stay on one line."""

_STYLES: Mapping[str, str] = {
    "running": "cyan",
    "parked": "bold yellow",
    "completed": "green",
    "skipped": "dim",
    "failed": "bold red",
    "terminated": "bold red",
    "cancelled": "magenta",
}


def console(*, stderr: bool = False) -> "Console":
    """A console on what stdout (or stderr) is now."""
    from rich.console import Console

    out = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = WIDTH_OF_A_PIPE
    return out


def is_interactive() -> bool:
    """Whether a person can be asked: input and output are a terminal."""
    streams = (sys.stdin, sys.stdout)
    return all(stream is not None and stream.isatty() for stream in streams)  # pyright: ignore[reportUnnecessaryComparison]


def print_json(value: Any) -> None:
    """Print JSON in plain ASCII, which no terminal can be steered by."""
    typer.echo(json.dumps(value, indent=2))


def text(value: object, style: str = "") -> "Text":
    """Anything as text that is safe to print; nothing is an empty string."""
    from rich.text import Text

    return Text("" if value is None else visible(str(value)), style)


def state_text(state: str) -> "Text":
    """A state of a run in its colour, where it has one."""
    return text(state, _STYLES.get(state.lower(), ""))


def table(*columns: str, title: str | None = None, numbers: Iterable[str] = ()) -> "Table":
    """An empty table; columns of `numbers` are set to the right."""
    from rich import box
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    right = set(numbers)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def pairs(rows: Sequence[tuple[str, object]]) -> "Table":
    """Names and values below each other; values that are None are left out."""
    from rich.table import Table
    from rich.text import Text

    made = Table.grid(padding=(0, 2))
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            made.add_row(name, value if isinstance(value, Text) else text(value))
    return made


def problems_text(count: int) -> str:
    """A number of problems."""
    return f"{count:,} problem{'' if count == 1 else 's'}"


def problems_table(problems: "Sequence[Problem]", count: int) -> "Table":
    """The first problems of an import, of `count` in all."""
    title = problems_text(count)
    if count > len(problems):
        title += f", the first {len(problems)}"
    made = table("line", "column", "value", "what is wrong", title=title, numbers=["line"])
    for problem in problems:
        line = problem.line if problem.sheet is None else f"{problem.line} of {problem.sheet}"
        made.add_row(
            *(text(cell) for cell in (line, problem.column, problem.value, problem.reason))
        )
    return made


def moment(value: datetime | None) -> str | None:
    """A time in UTC, to the second."""
    if value is None:
        return None
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return f"{aware.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
