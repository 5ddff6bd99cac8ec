"""The service of spreadsheets, opened for an operator.

A caller that has the settings of database and Temporal may answer for every organisation.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workers.shared.services.identity import Identity, local_identity

if TYPE_CHECKING:
    from activities.spreadsheets.import_rows import SqlSpreadsheetStatuses
    from workers.spreadsheets.service import SpreadsheetService
    from workers.spreadsheets.settings import SpreadsheetSettings
    from workers.spreadsheets.statuses import SpreadsheetStatuses


@dataclass(frozen=True)
class Access:
    """The service, and who asks it."""

    service: "SpreadsheetService"
    who: Identity


@asynccontextmanager
async def open_access(
    environment: Mapping[str, str],
    user: str | None,
    settings: "SpreadsheetSettings | None" = None,
    *,
    organisation: int | None = None,
    email: str | None = None,
) -> AsyncGenerator[Access]:
    """Connect to database and Temporal.

    Args:
        environment: Settings.
        user: Who asks; None: the user whom this process belongs to.
        settings: Of the service; None: nothing is uploaded.
        organisation: For whom; None: for all that have imports.
        email: Mail address of the user.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
        TemporalUnreachable: Temporal does not answer.
    """
    from activities.spreadsheets.views import SqlSpreadsheetViews
    from workers.shared.connect import connect
    from workers.shared.resources import open_resources
    from workers.spreadsheets.resources import spreadsheet_resources
    from workers.spreadsheets.service import SpreadsheetService
    from workers.spreadsheets.settings import SpreadsheetSettings

    async with open_resources(environment) as resources:
        sheets = spreadsheet_resources(resources.database)
        views = SqlSpreadsheetViews(resources.database)
        service = SpreadsheetService(
            await connect(),
            views,
            sheets.store,
            resources.blobs,
            sheets.types,
            settings or SpreadsheetSettings.read({}),
            resources.scratch,
        )
        yield Access(service, await _identity(environment, views, user, organisation, email))


@asynccontextmanager
async def open_statuses(
    environment: Mapping[str, str], user: str | None, *, organisation: int | None = None
) -> AsyncGenerator[tuple["SpreadsheetStatuses", Identity]]:
    """The status rows alone, and who asks, as for `open_access`.

    Raises:
        SettingsError: `DATABASE_URL` is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    from activities.spreadsheets.import_rows import SqlSpreadsheetStatuses
    from workers.shared.tables import open_tables
    from workers.spreadsheets.statuses import SpreadsheetStatuses

    async with open_tables(environment) as database:
        rows = SqlSpreadsheetStatuses(database)
        yield SpreadsheetStatuses(rows), await _identity(environment, rows, user, organisation)


async def _identity(
    environment: Mapping[str, str],
    rows: "SqlSpreadsheetStatuses",
    user: str | None,
    organisation: int | None,
    email: str | None = None,
) -> Identity:
    known = (organisation,) if organisation is not None else await rows.organisations()
    return local_identity(environment, user, known, email)
