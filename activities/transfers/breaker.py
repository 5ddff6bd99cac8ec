"""A breaker for each partner: one that is away is asked by its probe, and by nobody else."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from adapters.ports.places import PartnerAway, Place, Places
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

    The first failure counts for 5 seconds, each further one for twice as long, up to a minute.

    Args:
        places: Opens far ends.
        clock: Seconds.
    """

    def __init__(self, places: Places, clock: Callable[[], float] = time.monotonic) -> None:
        self._places, self._clock = places, clock
        self._away: dict[str, _Away] = {}

    @property
    def probing(self) -> Places:
        """Connects whatever is known, for the probe of an outage; a success closes the breaker."""
        return _Probing(self)

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
        async with self.connected(partner) as place:
            yield place

    @asynccontextmanager
    async def connected(self, partner: Partner) -> AsyncGenerator[Place]:
        """Connect, and remember how that went."""
        try:
            async with self._places.open(partner) as place:
                self._away.pop(partner.name, None)
                yield place
        except PartnerAway as error:
            self._note(partner.name, str(error))
            raise

    def _note(self, name: str, problem: str) -> None:
        known = self._away.get(name)
        failures = 1 if known is None else known.failures + 1
        pause = min(SHORTEST_SECONDS * 2.0 ** min(failures - 1, 10), LONGEST_SECONDS)
        self._away[name] = _Away(problem, failures, self._clock() + pause)


class _Probing:
    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker

    def open(self, partner: Partner) -> AbstractAsyncContextManager[Place]:
        return self._breaker.connected(partner)
