"""A breaker for each partner: one that is away is asked by its probe, and by nobody else."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from adapters.ports import Denied, NotYet
from adapters.ports.places import PartnerAway, Place, Places
from adapters.ports.transfers import PartnerStore
from contracts.transfers import Partner

SHORTEST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Away:
    problem: str
    failures: int
    until: float
    """Until then nobody but the probe connects."""


class Breaker:
    """Opens far ends, as `Places`; after a failure all who ask are told at once for some seconds.

    The first failure counts for 5 seconds, each further one for twice as long, up to a minute. The
    probe of an outage connects whatever is known, and its success closes the breaker.

    Args:
        places: Opens far ends.
        partners: Their records.
        clock: Seconds.
    """

    def __init__(
        self,
        places: Places,
        partners: PartnerStore,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places, self._partners, self._clock = places, partners, clock
        self._away: dict[str, _Away] = {}

    def open(self, partner: Partner) -> AbstractAsyncContextManager[Place]:
        """Connect, unless the partner was away a moment ago.

        Raises:
            PartnerAway: It cannot be reached, or could not a moment ago.
        """
        return self._opened(partner)

    @asynccontextmanager
    async def _opened(self, partner: Partner) -> AsyncGenerator[Place]:
        known = self._away.get(partner.name)
        if known is not None and self._clock() < known.until:
            raise PartnerAway(partner.name, known.problem)
        try:
            async with self._places.open(partner) as place:
                self._away.pop(partner.name, None)
                yield place
        except PartnerAway as error:
            self._note(partner.name, str(error))
            raise

    async def probe(self, name: str) -> None:
        """See whether a partner can be reached, and may be used.

        Raises:
            PartnerAway: It cannot, or is stopped until a person agrees.
            Denied: There is no such partner (any more): whoever waits is told so by its next step.
        """
        partner = await self._partners.get(name)
        if partner is None:
            raise Denied(f"there is no partner {name}")
        if partner.stopped is not None:
            raise PartnerAway(name, partner.stopped)
        try:
            async with self._places.open(partner):
                pass
        except PartnerAway as error:
            self._note(name, str(error))
            raise
        except NotYet:
            # All of its sessions are in use, or it is closed at this hour: it is not away.
            pass
        self._away.pop(name, None)

    def _note(self, name: str, problem: str) -> None:
        known = self._away.get(name)
        failures = 1 if known is None else known.failures + 1
        pause = min(SHORTEST_SECONDS * 2.0 ** min(failures - 1, 10), LONGEST_SECONDS)
        self._away[name] = _Away(problem, failures, self._clock() + pause)
