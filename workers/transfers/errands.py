"""What people ask of the workers of transfers."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from activities.transfers.cloud_events import NoEvent, read_event
from activities.transfers.partner_store import SqlPartnerStore
from adapters.files.openpgp.keyring import GnuPg
from workers.shared.register import Context
from workers.shared.services.errands import WAY_IN
from workers.shared.services.errors import Refused
from workers.shared.services.identity import OPERATOR, Identity
from workers.transfers.factory import transfer_service
from workers.transfers.partners import PartnerService
from workers.transfers.resources import partner_places, partner_secrets


def _service(context: Context, by: str) -> tuple[PartnerService, Identity]:
    secrets = partner_secrets(context.environment)
    store = SqlPartnerStore(context.resources.database)
    places = partner_places(context.environment, store, secrets)
    who = Identity(by, (), frozenset({OPERATOR}))
    return PartnerService(store, places, GnuPg(secrets)), who


async def start(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Have an event routed and carried out; one that came before starts nothing.

    Raises:
        Refused: It is no event, or another one came with its source and id.
        TemporalUnavailable: Temporal does not answer.
    """
    service = transfer_service(context.environment, context.client, context.resources.database)
    who = Identity(by, (), frozenset({OPERATOR}))
    body = json.dumps(given, ensure_ascii=False)
    try:
        read_event(body, datetime.now(UTC))
    except NoEvent as error:
        raise Refused(str(error)) from error
    done = await service.submit(who, body, WAY_IN)
    return {"id": done.workflow_id, "transfer_id": done.transfer_id, "is_new": done.created}


async def test_partner(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Connect to a partner, and see what it can do.

    Raises:
        NotFound: There is no such partner.
    """
    service, who = _service(context, by)
    return asdict(await service.test(who, given["name"], given.get("folder", "")))


async def show_host_key(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Fingerprint of the host key that a server shows.

    Raises:
        NotFound: There is no such partner.
        Refused: It cannot be asked for its key, or has none.
    """
    service, who = _service(context, by)
    return {"fingerprint": await service.shown_key(who, given["name"])}


async def accept_host_key(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Pin the host key that a server shows.

    Raises:
        NotFound: There is no such partner.
        Refused: The server shows another key, or has none.
    """
    service, who = _service(context, by)
    expected, retire = given["fingerprint"], given["retire"]
    await service.accept(who, given["name"], expected, retire=retire)
    return {"fingerprint": expected}


async def add_partner_key(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """Read an OpenPGP key and add it to a partner.

    Raises:
        NotFound: There is no such partner.
        InvalidRequest: It is another key than its fingerprint says, or cannot be used.
    """
    service, who = _service(context, by)
    return {"state": await service.add_key(who, given["name"], given["key"])}


async def partner_key_states(context: Context, own: Any, given: Mapping[str, Any], by: str) -> Any:
    """How long each OpenPGP key of a partner lasts, by fingerprint.

    Raises:
        NotFound: There is no such partner.
    """
    service, who = _service(context, by)
    return dict(await service.key_lives(await service.get(who, given["name"])))
