"""The service of partners over the database alone."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from adapters.database.transfers.partners import SqlPartnerStore
from adapters.files.openpgp import GnuPg
from workers.resources.endpoints import partner_places, partner_secrets
from workers.resources.tables import open_tables
from workers.services.identity import OPERATOR, Identity
from workers.services.transfers.partners import PartnerService


@asynccontextmanager
async def open_partners(
    environment: Mapping[str, str], user: str | None
) -> AsyncGenerator[tuple[PartnerService, Identity]]:
    """The service, and who asks it: a user who may use the database is an operator.

    Raises:
        SettingsError: A setting is missing or wrong.
        SchemaBehind: The database waits for `docflow db upgrade`.
    """
    secrets = partner_secrets(environment)
    async with open_tables(environment) as database:
        store = SqlPartnerStore(database)
        places = partner_places(environment, store, secrets)
        service = PartnerService(store, places, GnuPg(secrets))
        yield service, Identity(user or "operator", (), frozenset({OPERATOR}))
