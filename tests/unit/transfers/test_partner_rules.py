"""Rules of partners: windows, keys that expire, paths."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from activities.transfers.watches import KeyExpiry
from adapters.ports.errors import Denied
from adapters.ports.transfers import KeyInfo
from tests.support.imports.activities import environment
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.actions import NOON
from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import (
    HostKey,
    OpenPgpKey,
    Partner,
    PlaceKind,
    Window,
    expiry_step,
    opens_at,
)
from workflows.transfers.paths import matcher, numbered, temporary
from workflows.transfers.runs import KeyWarningsInput

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKd3l0b5ZmQyYnJzYmFzZTY0c3R1ZmZoZXJlISEh"


def partner(**fields: Any) -> Partner:
    return Partner(name="acme", kind=PlaceKind.FOLDER, container="/srv", **fields)


@pytest.mark.parametrize(
    ("left", "step"),
    [(60, None), (31, None), (30, 30), (15, 30), (14, 14), (8, 14), (7, 7), (0, 7), (-1, 0)],
)
def test_notices_are_sent_30_14_and_7_days_before_a_key_ends(left: int, step: int | None) -> None:
    today = date(2026, 3, 2)
    assert expiry_step(today + timedelta(left), today) == step


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        # The last Sunday of March: clocks go from 2 to 3, at 1 UTC.
        (datetime(2026, 3, 29, 0, 30, tzinfo=UTC), datetime(2026, 3, 29, 1, 0, tzinfo=UTC)),
        (datetime(2026, 3, 29, 1, 30, tzinfo=UTC), None),
        (datetime(2026, 3, 29, 2, 30, tzinfo=UTC), datetime(2026, 3, 30, 1, 0, tzinfo=UTC)),
        (datetime(2026, 3, 28, 2, 30, tzinfo=UTC), None),
    ],
)
def test_windows_are_meant_in_the_zone_of_the_partner(
    now: datetime, opens: datetime | None
) -> None:
    windows = (Window(opens="03:00", closes="04:00"),)
    assert opens_at(partner(windows=windows, zone="Europe/Berlin"), now) == opens


def test_a_window_that_ends_on_the_next_day_is_open_until_then() -> None:
    at = partner(windows=(Window(weekdays=(4,), opens="22:00", closes="02:00"),))
    assert opens_at(at, datetime(2026, 3, 7, 1, 59, tzinfo=UTC)) is None  # a Saturday
    assert opens_at(at, datetime(2026, 3, 7, 2, 0, tzinfo=UTC)) == datetime(
        2026, 3, 13, 22, tzinfo=UTC
    )


def test_windows_that_never_open_and_unknown_zones_are_refused() -> None:
    with pytest.raises(RuleViolation, match="never open"):
        opens_at(partner(windows=(Window(weekdays=()),)), NOON)
    with pytest.raises(RuleViolation, match="no time zone"):
        opens_at(partner(windows=(Window(),), zone="Mars/Base"), NOON)


def test_a_number_never_makes_a_name_too_long() -> None:
    assert numbered("in/a.tar.gz", 2) == "in/a-2.tar.gz"
    assert numbered(".hidden", 3) == ".hidden-3"
    long = numbered(f"in/{'ü' * 127}.csv", 12)
    assert len(long.removeprefix("in/").encode()) <= 255 and long.endswith("-12.csv")


def test_patterns_never_take_a_file_that_is_being_written() -> None:
    name = temporary("in/a.csv", "run").removeprefix("in/")
    assert not matcher("*").fullmatch(name)
    assert temporary("in/a.csv", "run") != temporary("in/a.csv", "another")


@dataclass
class Keyrings:
    """Keys that end on given days."""

    ends: dict[str, datetime | None]
    lacking: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    @asynccontextmanager
    async def open(self, keys: Sequence[OpenPgpKey]) -> AsyncIterator[Any]:
        """A keyring of one key."""
        fingerprint = keys[0].fingerprint
        if fingerprint not in self.ends:
            raise Denied(f"there is no key {fingerprint}")

        class Keyring:
            keys = (
                KeyInfo(
                    fingerprint,
                    True,
                    self.ends[fingerprint],
                    lacking=self.lacking.get(fingerprint, ()),
                ),
            )

        yield Keyring()


async def test_a_private_key_without_its_sub_key_is_reported() -> None:
    ours = "AB" * 20
    store = MemoryPartners(partner(keys=(OpenPgpKey(fingerprint=ours, own=True),)))
    keyrings: Any = Keyrings({ours: None}, {ours: ("12AB",)})
    look = KeyExpiry(store, keyrings, lambda: NOON).expiring_keys
    (found,) = (await environment().run(look, KeyWarningsInput())).warnings
    assert "cannot be used: its text lacks the private part of 12AB" in found.sentence


async def test_notices_of_keys_that_expire_say_what_that_means() -> None:
    ours, theirs, good, broken = ("AB" * 20, "CD" * 20, "EF" * 20, "01" * 20)
    keyrings = Keyrings(
        {ours: NOON - timedelta(3), theirs: NOON + timedelta(10), good: None},
    )
    store = MemoryPartners(
        partner(
            keys=(
                OpenPgpKey(fingerprint=ours, own=True),
                OpenPgpKey(fingerprint=theirs),
                OpenPgpKey(fingerprint=good),
                OpenPgpKey(fingerprint=broken),
            ),
            host_keys=(HostKey(key=ED25519, valid_until=date(2026, 3, 8)),),
            contact="it@acme.example",
        ),
        partner(
            host_keys=(HostKey(key=ED25519, valid_until=date(2026, 3, 8)), HostKey(key=ED25519)),
        ).model_copy(update={"name": "followed"}),
        partner(keys=(OpenPgpKey(fingerprint=ours),)).model_copy(
            update={"name": "disabled", "enabled": False}
        ),
    )
    look = KeyExpiry(store, keyrings, lambda: NOON).expiring_keys  # type: ignore[arg-type]
    found = (await environment().run(look, KeyWarningsInput())).warnings
    assert [(each.partner, each.step) for each in found] == [
        ("acme", 7),
        ("acme", 0),
        ("acme", 14),
        ("acme", 0),
    ]
    host, own, other, unreadable = (each.sentence for each in found)
    assert "expires on 2026-03-08" in host and "it@acme.example" in host
    assert "still decrypts" in own and "has expired on 2026-02-27" in own
    assert "nothing is encrypted to it" in other
    assert "cannot be used" in unreadable
    rest = await environment().run(look, KeyWarningsInput(skip=3))
    assert rest.warnings == found[3:]
    assert (await environment().run(look, KeyWarningsInput(skip=4))).warnings == ()
