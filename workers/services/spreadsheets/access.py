"""The service of spreadsheets, opened for an operator.

A caller that has the settings of database and Temporal may answer for every organisation.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sqlalchemy import select

from adapters.database import Database
from adapters.database.models.spreadsheets import spreadsheet_imports
from adapters.database.spreadsheets import SqlSpreadsheetViews
from workers.connect import connect
from workers.resources.common import open_resources
from workers.resources.spreadsheets import spreadsheet_resources
from workers.services.identity import OPERATOR, Identity
from workers.services.spreadsheets.service import SpreadsheetService
from workers.settings.spreadsheets import SpreadsheetSettings


@dataclass(frozen=True)
class Access:
    """The service, and who asks it."""

    service: SpreadsheetService
    who: Identity


@asynccontextmanager
async def open_access(
    environment: Mapping[str, str],
    user: str | None,
    settings: SpreadsheetSettings | None = None,
    *,
    organisation: int | None = None,
    email: str | None = None,
) -> AsyncGenerator[Access]:
    """Connect to database and Temporal.

    Args:
        environment: Settings.
        user: Who asks.
        settings: Of the service; None: nothing is uploaded.
        organisation: For whom; None: for all that have imports.
        email: Mail address of the user.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    async with open_resources(environment) as resources:
        sheets = spreadsheet_resources(resources.database)
        service = SpreadsheetService(
            await connect(),
            SqlSpreadsheetViews(resources.database),
            sheets.store,
            resources.blobs,
            sheets.types,
            settings or SpreadsheetSettings.read({}),
            resources.scratch,
        )
        known = (
            (organisation,) if organisation is not None else await organisations(resources.database)
        )
        roles = frozenset({OPERATOR})
        yield Access(service, Identity(user or "operator", known, roles, email=email))


async def organisations(database: Database) -> tuple[int, ...]:
    """Every organisation that has imports."""
    query = select(spreadsheet_imports.c.organisation_id).distinct()
    async with database.reading() as connection:
        return tuple((await connection.execute(query)).scalars())
