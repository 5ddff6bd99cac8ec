"""Sessions and new connections of a partner, counted over all workers."""

import asyncio
import logging
import math
import random
import time
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from adapters.ports import Unavailable
from adapters.ports.places import Busy
from adapters.ports.transfers import PartnerStore
from contracts.transfers import Limits, Partner, PlaceKind

LEASE_SECONDS: Final = 60.0
"""After so long a killed worker's session is free."""
WAIT_SECONDS: Final = 10.0
"""A step waits so long itself; then its run does, and the slot of the worker is free."""
_PAUSE_SECONDS: Final = 0.25

logger = logging.getLogger(__name__)


def connections_of(partner: str) -> str:
    """Name of the leases that stand for new connections, beside those of sessions."""
    return f"{partner}/connections"


def _is_limited(partner: Partner) -> bool:
    """Servers have the limits of a record or the default ones; folders and object stores, which
    know of no sessions, have them only where the record says so."""
    servers = (PlaceKind.SFTP, PlaceKind.HTTPS)
    return partner.kind in servers or partner.limits != Limits()


class Sessions:
    """Takes sessions.

    Args:
        store: Keeps the leases.
        wait: Seconds that a step waits itself.
    """

    def __init__(self, store: PartnerStore, wait: float = WAIT_SECONDS) -> None:
        self._store, self._wait = store, wait

    @asynccontextmanager
    async def session(self, partner: Partner) -> AsyncGenerator[None]:
        """Hold one of a partner's sessions for the length of the block.

        Raises:
            Busy: All are in use, for longer than a step waits.
        """
        if not _is_limited(partner):
            yield
            return
        owner, limits = uuid.uuid4().hex, partner.limits
        await self._taken(partner.name, owner, limits.sessions, LEASE_SECONDS, "sessions")
        keeping = asyncio.create_task(self._keep(partner, owner))
        try:
            # No more leases than whole connections fit into their length: they end by themselves.
            slots = max(1, math.floor(limits.connections_per_second))
            seconds = slots / limits.connections_per_second
            name = connections_of(partner.name)
            await self._taken(name, owner, slots, seconds, "new connections")
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            with suppress(Unavailable):
                # It ends by itself.
                await self._store.release(partner.name, owner)

    async def _taken(self, name: str, owner: str, slots: int, seconds: float, what: str) -> None:
        end = time.monotonic() + self._wait
        while not await self._store.lease(name, owner, slots, seconds):
            if time.monotonic() >= end:
                partner = name.partition("/")[0]
                # Spread, so that not all of those who wait come back at once.
                raise Busy(f"all {what} of {partner} are in use", random.uniform(5.0, 15.0))
            await asyncio.sleep(random.uniform(0.5, 1.5) * _PAUSE_SECONDS)

    async def _keep(self, partner: Partner, owner: str) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            try:
                held = await self._store.lease(
                    partner.name, owner, partner.limits.sessions, LEASE_SECONDS
                )
            except Unavailable as error:
                logger.info("a session of %s was not prolonged: %s", partner.name, error)
                continue
            if not held:
                logger.warning("a session of %s ran out, and another took it", partner.name)
