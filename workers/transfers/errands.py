"""What people ask of the workers of transfers."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from activities.transfers.partner_store import SqlPartnerStore
from adapters.files.openpgp.keyring import GnuPg
from workers.shared.register import Context
from workers.shared.services.identity import OPERATOR, Identity
from workers.transfers.partners import PartnerService
from workers.transfers.resources import partner_places, partner_secrets


async def test_partner(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Connect to a partner, and see what it can do.

    Raises:
        NotFound: There is no such partner.
    """
    secrets = partner_secrets(context.environment)
    store = SqlPartnerStore(context.resources.database)
    places = partner_places(context.environment, store, secrets)
    service = PartnerService(store, places, GnuPg(secrets))
    who = Identity(by, (), frozenset({OPERATOR}))
    return asdict(await service.test(who, given["name"], given.get("folder", "")))
