"""What commands about jobs use."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.context import CliContext
from workers.cli.errors import UsageError

if TYPE_CHECKING:
    from workers.services.identity import Identity
    from workers.services.jobs.service import JobService

JobArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="Id of the job, its first 8 characters or more, or its alias."
    ),
]


def open_jobs(
    cli: CliContext,
) -> "AbstractAsyncContextManager[tuple[JobService, Identity]]":
    """The service of jobs, and who asks it.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from workers.services.jobs import factory

    return factory.open_service(cli.environment)


def parameters_of(given: Sequence[str]) -> dict[str, str]:
    """Parameters as they were typed, by name.

    Raises:
        UsageError: One has no name or no value, or is given twice.
    """
    parameters: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise UsageError("--param: write NAME=VALUE")
        if name in parameters:
            raise UsageError(f"--param: {name} is given twice; write a list as JSON")
        parameters[name] = value
    return parameters
