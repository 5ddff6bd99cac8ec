"""How commands fail: one line on stderr with what to do, and an exit code."""

from collections.abc import Awaitable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NoReturn, TypeVar

import typer

from workers.shared.cli.standard_output import NOT_WRITTEN
from workers.shared.text import one_line
from workflows.shared.errors import RuleViolation

Result = TypeVar("Result")


class ExitCode(IntEnum):
    """Exit codes of commands. A completed import is 0, rejected rows or not."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PARKED = 4
    """The import waits for a person."""
    NOT_WRITTEN = NOT_WRITTEN
    """A file or standard output cannot be written."""


class CommandError(Exception):
    """A command cannot be completed; the message says why and what to do.

    Attributes:
        exit_code: Exit code of the command.
    """

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class UsageError(CommandError):
    """The options do not fit together, or one is missing; the message names it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, ExitCode.USAGE)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work; expected failures become one line and an exit code."""
    import asyncio

    with failures_in_one_line():
        return asyncio.run(work)


@dataclass(frozen=True)
class Failure:
    """Why something could not be done, where that is an answer and no end."""

    reason: str


async def attempt(work: Awaitable[Result]) -> Result | Failure:
    """Do something that may fail as expected; a bug is raised."""
    try:
        return await work
    except (CommandError, *_expected()) as error:
        return Failure(_sentence(error))


@contextmanager
def failures_in_one_line() -> Generator[None]:
    """Show expected failures without a traceback; a bug keeps its own."""
    try:
        yield
    except typer.Exit:
        raise
    except CommandError as error:
        stop(error)
    except _expected() as error:
        _stop(error, ExitCode.USAGE if _is_misuse(error) else ExitCode.FAILED)


def stop(error: CommandError) -> NoReturn:
    """Show why a command is not carried out, and end with its exit code."""
    _stop(error, error.exit_code)


def _stop(error: Exception, exit_code: ExitCode) -> NoReturn:
    for line in _lines(error):
        typer.echo(f"docflow: {one_line(line)}", err=True)
    raise typer.Exit(exit_code) from error


def _lines(error: Exception) -> Sequence[str]:
    """One line, or one for each setting, or each part of a file, that is wrong."""
    from workers.shared.errors import SettingsError

    if isinstance(error, CommandError) and isinstance(error.__cause__, RuleViolation):
        return str(error).splitlines()
    return error.problems if isinstance(error, SettingsError) else (_sentence(error),)


def _sentence(error: Exception) -> str:
    """What is wrong and, where a service knows it, why and where to look."""
    from workers.shared.services.errors import ServiceError, ServiceUnavailable, TemporalUnavailable

    text = str(error) or type(error).__name__
    # What Temporal's client raised is in the text already, in words.
    is_explained = isinstance(error, TemporalUnavailable)
    if isinstance(error, ServiceUnavailable) and not is_explained:
        cause = str(error.__cause__ or "")
        text += f" ({cause})" if cause and cause not in text else ""
    if isinstance(error, ServiceError) and error.workflow_id is not None:
        text += f"; see `docflow show {error.workflow_id}`"
    return text


def _is_misuse(error: Exception) -> bool:
    from docflow.client.errors import NotConfigured, Problem
    from workers.shared.services.errors import InvalidRequest

    refused = isinstance(error, Problem) and error.status in (400, 422)
    return refused or isinstance(error, (InvalidRequest, NotConfigured))


def _expected() -> tuple[type[Exception], ...]:
    """Failures whose message is written for the person at the terminal.

    Called only when something was raised, so that a command that works never loads them.
    """
    from adapters.ports.errors import PortError
    from docflow.client.errors import ClientError
    from workers.shared.errors import SettingsError, TemporalUnreachable
    from workers.shared.services.errors import ServiceError

    return SettingsError, PortError, ServiceError, TemporalUnreachable, ClientError
