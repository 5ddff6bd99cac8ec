"""An endpoint in memory that is listed only."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from adapters.ports.places import Entry, PartnerAway, Place
from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import Partner, Rename, ServerProfile
from workflows.transfers.paths import matcher, split


@dataclass
class ListedPlaces:
    """As `Places`, with one endpoint for every partner."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    is_away: bool = False
    profile: ServerProfile = field(default_factory=lambda: ServerProfile(rename=Rename.DIRECT))

    def put(self, path: str, size: int = 1, **more: Any) -> None:
        self.entries[path] = Entry(path, size, **more)

    @asynccontextmanager
    async def open(self, partner: Partner) -> AsyncIterator[Place]:
        if self.is_away:
            raise PartnerAway(partner.name, f"{partner.name} does not answer")
        yield cast(Place, self)

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        folder, name = split(pattern)
        match = matcher(name).match
        found = [
            entry
            for path, entry in sorted(self.entries.items())
            if split(path)[0] == folder and match(split(path)[1])
        ]
        return found[: most + 1]


@dataclass
class SentEvents:
    """As `EventSender`: the events of watches, in order; the same id twice is one."""

    bodies: list[str] = field(default_factory=list[str])
    refused: str | None = None

    async def send(self, body: str, queue: str | None) -> str:
        if self.refused:
            raise RuleViolation(self.refused)
        self.bodies.append(body)
        return "5eed" * 16
