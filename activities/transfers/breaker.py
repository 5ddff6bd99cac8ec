"""A breaker for each partner: only the probe connects to one that is unavailable."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from adapters.ports.places import (
    Busy,
    LoginRefused,
    PartnerAway,
    PartnerFull,
    Place,
    PlaceError,
    Places,
)
from contracts.transfers import Partner

SHORTEST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0
REFUSED_SECONDS: Final = 300.0
"""For a server that refuses the login, from the first time on."""


@dataclass(frozen=True, slots=True)
class _Away:
    problem: str
    failures: int
    until: float
    """Until then only the probe connects."""
    refused: bool = False
    """It refuses the login: the probe does not connect either."""


class Breaker:
    """Opens endpoints, as `Places`; after a failure all callers fail at once for some seconds.

    The first failure counts for 5 seconds, each further one for twice as long, up to a minute; a
    login that was refused for five minutes.

    Args:
        places: Opens endpoints.
        clock: Seconds.
        probes: Opens them for the probe; None: as for all others.
    """

    def __init__(
        self,
        places: Places,
        clock: Callable[[], float] = time.monotonic,
        probes: Places | None = None,
    ) -> None:
        self._places, self._clock = places, clock
        self._probes = probes or places
        self._away: dict[str, _Away] = {}

    @property
    def probing(self) -> Places:
        """Connects whatever is known, for the probe of an outage; a success closes the breaker."""
        return _Probing(self, self._probes)

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
        async with self.connected(partner, self._places) as place:
            yield place

    @asynccontextmanager
    async def connected(self, partner: Partner, places: Places) -> AsyncGenerator[Place]:
        """Connect, and remember how that and what followed went."""
        try:
            async with places.open(partner) as place:
                yield place
        except PartnerFull:
            # It has answered; what is read and removed there makes room.
            self._away.pop(partner.name, None)
            raise
        except PartnerAway as error:
            self._note(partner.name, error)
            raise
        except PlaceError:
            # The endpoint has answered.
            self._away.pop(partner.name, None)
            raise
        self._away.pop(partner.name, None)

    def problem(self, partner: Partner) -> str | None:
        """Why a partner was away when it was used last; None: it was not."""
        known = self._away.get(partner.name)
        return None if known is None else known.problem

    def require_login(self, partner: Partner) -> None:
        """See that a partner did not refuse us a moment ago.

        Raises:
            PartnerAway: It did.
        """
        known = self._away.get(partner.name)
        if known is not None and known.refused and self._clock() < known.until:
            raise PartnerAway(partner.name, known.problem)

    def _note(self, name: str, error: PartnerAway) -> None:
        known = self._away.get(name)
        failures = 1 if known is None else known.failures + 1
        refused = isinstance(error, LoginRefused)
        pause = min(SHORTEST_SECONDS * 2.0 ** min(failures - 1, 10), LONGEST_SECONDS)
        until = self._clock() + (REFUSED_SECONDS if refused else pause)
        self._away[name] = _Away(str(error), failures, until, refused)


class _Probing:
    def __init__(self, breaker: Breaker, places: Places) -> None:
        self._breaker, self._places = breaker, places

    def open(self, partner: Partner) -> AbstractAsyncContextManager[Place]:
        return self._opened(partner)

    @asynccontextmanager
    async def _opened(self, partner: Partner) -> AsyncGenerator[Place]:
        self._breaker.require_login(partner)
        try:
            async with self._breaker.connected(partner, self._places) as place:
                yield place
        except Busy:
            # Those that use it now may be waiting in vain; one that succeeds closes the breaker.
            problem = self._breaker.problem(partner)
            if problem is None:
                raise
            raise PartnerAway(partner.name, problem) from None
