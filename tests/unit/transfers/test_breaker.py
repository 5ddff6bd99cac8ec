"""A partner that is away is asked by one, and all others are told."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from activities.transfers.endpoints import LONGEST_SECONDS, REFUSED_SECONDS, Breaker
from adapters.ports.places import Busy, FileMissing, LoginRefused, PartnerAway, PartnerFull
from workflows.transfers.partners import Partner, PlaceKind

ACME = Partner(name="acme", kind=PlaceKind.SFTP)
OTHER = Partner(name="other", kind=PlaceKind.SFTP)


@dataclass
class Far:
    """Endpoints and records of a test."""

    failure: Exception | None = None
    opened: list[str] = field(default_factory=list[str])
    now: float = 0.0

    def __post_init__(self) -> None:
        self.breaker = Breaker(self, lambda: self.now)  # type: ignore[arg-type]

    @asynccontextmanager
    async def open(self, partner: Partner) -> AsyncGenerator[Any]:
        self.opened.append(partner.name)
        if self.failure is not None:
            raise self.failure
        yield partner.name

    async def probe(self) -> None:
        async with self.breaker.probing.open(ACME):
            pass

    async def use(self, partner: Partner = ACME) -> None:
        async with self.breaker.open(partner):
            pass

    async def is_away(self, partner: Partner = ACME) -> str:
        with pytest.raises(PartnerAway) as raised:
            await self.use(partner)
        return str(raised.value)


async def test_after_a_failure_there_is_no_connection_for_some_seconds() -> None:
    far = Far(PartnerAway("acme", "no route to host"))
    assert await far.is_away() == "no route to host"
    far.failure = None
    assert await far.is_away() == "no route to host"
    await far.use(OTHER)
    assert far.opened == ["acme", "other"]
    far.now = 5.0
    await far.use()
    assert far.opened == ["acme", "other", "acme"]


async def test_each_failure_counts_for_twice_as_long_up_to_a_minute() -> None:
    far = Far(PartnerAway("acme", "no route to host"))
    await far.is_away()
    pauses: list[float] = []
    for _ in range(6):
        began, tries = far.now, len(far.opened)
        while len(far.opened) == tries:
            far.now += 5.0
            await far.is_away()
        pauses.append(far.now - began)
    assert pauses == [5, 10, 20, 40, LONGEST_SECONDS, LONGEST_SECONDS]


async def test_the_probe_connects_and_closes_the_breaker() -> None:
    far = Far(PartnerAway("acme", "no route to host"))
    await far.is_away()
    with pytest.raises(PartnerAway):
        await far.probe()
    far.failure = None
    await far.probe()
    await far.use()
    assert far.opened == ["acme"] * 4


async def test_a_connection_that_breaks_while_it_is_used_opens_the_breaker() -> None:
    far = Far()
    with pytest.raises(PartnerAway):
        async with far.breaker.open(ACME):
            raise PartnerAway("acme", "connection lost")
    assert await far.is_away() == "connection lost"


async def test_a_failure_of_one_file_closes_the_breaker_for_the_endpoint_has_answered() -> None:
    far = Far(PartnerAway("acme", "no route to host"))
    await far.is_away()
    far.failure, far.now = None, 5.0
    with pytest.raises(FileMissing):
        async with far.breaker.open(ACME):
            raise FileMissing("there is no such file")
    assert far.breaker.problem(ACME) is None


async def test_a_partner_without_room_is_read_from() -> None:
    far = Far(PartnerAway("acme", "no route to host"))
    await far.is_away()
    far.failure, far.now = None, 5.0
    with pytest.raises(PartnerFull):
        async with far.breaker.open(ACME):
            raise PartnerFull("acme", "acme has no room for 5 bytes", 5)
    await far.use()


async def test_a_probe_that_finds_no_session_proves_nothing() -> None:
    far = Far(Busy("all sessions are in use", 5.0))
    with pytest.raises(Busy):
        await far.probe()
    far.failure = PartnerAway("acme", "connection lost")
    await far.is_away()
    far.failure = Busy("all sessions are in use", 5.0)
    with pytest.raises(PartnerAway, match="connection lost"):
        await far.probe()


async def test_a_login_that_was_refused_is_not_tried_for_five_minutes_by_the_probe_either() -> None:
    far = Far(LoginRefused("acme", "the password has expired"))
    await far.is_away()
    far.failure = None
    with pytest.raises(PartnerAway, match="has expired"):
        await far.probe()
    far.now = REFUSED_SECONDS - 1
    assert await far.is_away() == "the password has expired"
    far.now = REFUSED_SECONDS
    await far.probe()
    await far.use()
    assert far.opened == ["acme"] * 3
