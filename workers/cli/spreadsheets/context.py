"""The service of spreadsheets, for the person at the terminal.

Commands do what the pages do, through the same code. Who has the settings of database and Temporal
may answer for every organisation.
"""

import re
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import TypeAdapter, ValidationError

from contracts.spreadsheets import Uuid, workflow_id
from workers.cli.context import CliContext
from workers.cli.errors import CommandError, UsageError

if TYPE_CHECKING:
    from adapters.database import Database
    from workers.gateway.settings import GatewaySettings
    from workers.services.identity import Identity
    from workers.services.spreadsheets.service import SpreadsheetService

UuidArgument = Annotated[str, typer.Argument(metavar="UUID", help="As `spreadsheets list` says.")]

OPTIONS: Mapping[str, str] = {
    "importType": "--type",
    "organisationId": "--organisation",
    "contextId": "--context",
    "headerLine": "--header-line",
    "autoStart": "--auto-start",
    "dryRun": "--dry-run",
    "targetField": "--field",
    "targetEntityId": "--set",
}
"""Field of the API to the option that sets it."""

_NAMES = re.compile(rf"\b({'|'.join(OPTIONS)})\b")
_UUID: TypeAdapter[str] = TypeAdapter(Uuid)
_WORKFLOW_ID = workflow_id("")


def parse_uuid(text: str) -> str:
    """The uuid of an import, also from its workflow id.

    Raises:
        UsageError: It is none.
    """
    try:
        return _UUID.validate_python(text.strip().removeprefix(_WORKFLOW_ID).lower())
    except ValidationError:
        raise UsageError(
            f"{text!r} is no uuid of an import; `docflow spreadsheets list` shows them"
        ) from None


@dataclass(frozen=True)
class Access:
    """What commands about spreadsheets use."""

    service: "SpreadsheetService"
    who: "Identity"


@asynccontextmanager
async def open_access(
    cli: CliContext, *, organisation: int | None = None, email: str | None = None
) -> AsyncGenerator[Access]:
    """Connect to database and Temporal.

    Args:
        cli: Settings and user.
        organisation: For whom; None: for all that have imports.
        email: Mail address of the user.

    Raises:
        SettingsError: A setting is missing or makes no sense.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
        CommandError: The service refuses what it is asked inside the block.
    """
    from adapters.database.spreadsheets import SqlSpreadsheetViews
    from workers.connect import connect
    from workers.resources import open_resources
    from workers.services.errors import ServiceError
    from workers.services.identity import OPERATOR, Identity
    from workers.services.spreadsheets.service import SpreadsheetService

    settings = _settings(cli.environment)
    async with open_resources(cli.environment) as resources:
        service = SpreadsheetService(
            await connect(),
            SqlSpreadsheetViews(resources.database),
            resources.spreadsheets,
            resources.blobs,
            resources.sheet_types,
            settings,
            resources.scratch,
        )
        organisations = (
            (organisation,)
            if organisation is not None
            else await _organisations(resources.database)
        )
        roles = frozenset({OPERATOR})
        who = Identity(cli.user or "operator", organisations, roles, email=email)
        try:
            yield Access(service, who)
        except ServiceError as refusal:
            raise CommandError(_in_options(str(refusal))) from refusal


def _in_options(refusal: str) -> str:
    """A refusal that names options, where the API's names fields."""
    return _NAMES.sub(lambda found: OPTIONS[found[0]], refusal)


def _settings(environment: Mapping[str, str]) -> "GatewaySettings":
    """The gateway's settings but for its keys: nobody signs in at a terminal."""
    from workers.gateway.settings import GatewaySettings

    ours = {name: value for name, value in environment.items() if "_JWT_" not in name}
    return GatewaySettings.read({**ours, "DOCFLOW_JWT_KEY": secrets.token_hex(32)})


async def _organisations(database: "Database") -> tuple[int, ...]:
    """Every organisation that has imports."""
    from sqlalchemy import select

    from adapters.database.models.spreadsheets import spreadsheet_imports

    query = select(spreadsheet_imports.c.organisation_id).distinct()
    async with database.reading() as connection:
        return tuple((await connection.execute(query)).scalars())
