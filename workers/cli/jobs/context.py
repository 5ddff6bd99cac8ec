"""What commands about jobs use."""

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.context import CliContext

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
    from workers.services.jobs import opening

    return opening.open_service(cli.environment)
