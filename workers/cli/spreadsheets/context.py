"""The service of spreadsheets, for the person at the terminal.

Commands do what the pages do, through the same code. Who has the settings of database and Temporal
may answer for every organisation.
"""

import re
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.spreadsheets import workflow_id
from workers.cli.context import CliContext
from workers.cli.errors import CommandError, ExitCode, UsageError
from workers.pipelines.spreadsheets import SPREADSHEETS

if TYPE_CHECKING:
    from workers.services.identity import Identity
    from workers.services.spreadsheets.access import Access
    from workers.services.spreadsheets.statuses import SpreadsheetStatuses

UuidArgument = Annotated[
    str, typer.Argument(metavar="UUID", help="As `spreadsheets list` shows it.")
]

OPTIONS: Mapping[str, str] = {
    "importType": "--type",
    "organisationId": "--organisation",
    "contextId": "--context",
    "headerLine": "--header-line",
    "noHeader": "--no-header",
    "autoStart": "--auto-start",
    "dryRun": "--dry-run",
    "targetField": "--field",
    "targetEntityId": "--set",
}
"""Field of the API to the option that sets it."""

_SAME_NAMES = re.compile(r"(^|; )(notify|reason|to):")
"""Fields whose names are words of sentences too, where a problem with them begins."""

_NAMES = re.compile(rf"\b({'|'.join(OPTIONS)})\b")


def parse_uuid(text: str) -> str:
    """The uuid of an import, also from its workflow id.

    Raises:
        UsageError: It is not one.
    """
    text = text.strip().lower()
    known = SPREADSHEETS.recognise(text) or SPREADSHEETS.recognise(workflow_id(text))
    if known is None or known.kind.scheduled:
        raise UsageError(
            f"{text!r} is not the UUID of an import; `docflow spreadsheets list` shows them"
        )
    return known.key


@asynccontextmanager
async def open_access(
    cli: CliContext, *, organisation: int | None = None, email: str | None = None
) -> AsyncGenerator["Access"]:
    """Connect to database and Temporal.

    Args:
        cli: Settings and user.
        organisation: For whom; None: for all that have imports.
        email: Mail address of the user.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
        CommandError: The service refused an operation inside the block.
    """
    from workers.services.spreadsheets import access
    from workers.settings.spreadsheets import SpreadsheetSettings

    settings = SpreadsheetSettings.read(cli.environment)
    with _refusals_in_options():
        async with access.open_access(
            cli.environment, cli.user, settings, organisation=organisation, email=email
        ) as opened:
            yield opened


@asynccontextmanager
async def open_statuses(
    cli: CliContext, *, organisation: int | None = None
) -> AsyncGenerator[tuple["SpreadsheetStatuses", "Identity"]]:
    """The status rows alone, and who asks for them.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        CommandError: An operation inside the block was refused.
    """
    from workers.services.spreadsheets import access

    with _refusals_in_options():
        async with access.open_statuses(
            cli.environment, cli.user, organisation=organisation
        ) as opened:
            yield opened


@contextmanager
def _refusals_in_options() -> Generator[None]:
    from workers.services.errors import Refused, ServiceError

    try:
        yield
    except ServiceError as refusal:
        misuse = isinstance(refusal, Refused)
        exit_code = ExitCode.USAGE if misuse else ExitCode.FAILED
        raise CommandError(_in_options(str(refusal)), exit_code) from refusal


def _in_options(refusal: str) -> str:
    """A refusal that names options, where the API's names fields."""
    named = _NAMES.sub(lambda found: OPTIONS[found[0]], refusal)
    return _SAME_NAMES.sub(r"\1--\2:", named)
