"""What tests of endpoints share."""

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adapters.places.base import Timeouts
from adapters.places.egress import Egress
from adapters.places.partner_places import PartnerPlaces, Sessions
from adapters.ports.places import Naming, Place, Written
from adapters.secrets import ReferencedSecrets
from tests.support.memory.partners import MemoryPartners
from workflows.transfers.settings import Guarantee, Overwrite

QUICK = Timeouts(login=20.0, answer=20.0, keepalive=0.2)
"""A dead connection is told within a second; a slow machine has its time to answer."""


@dataclass
class MemoryNamings:
    """What attempts at one file noted, in memory."""

    notes: list[Naming | None] = field(default_factory=list)

    async def last(self) -> Naming | None:
        return self.notes[-1] if self.notes else None

    async def note(self, naming: Naming | None) -> None:
        self.notes.append(naming)


def open_places(
    secrets: Mapping[str, str] | None = None,
    folders: Sequence[Path] = (),
    store: MemoryPartners | None = None,
    wait: float = 10.0,
    egress: Egress | None = None,
    **more: Any,
) -> PartnerPlaces:
    """Endpoints on this machine."""
    return PartnerPlaces(
        ReferencedSecrets(secrets or {}),
        Sessions(store or MemoryPartners(), wait),
        egress or Egress(local=True, folders=tuple(folders)),
        timeouts=QUICK,
        **more,
    )


async def pieces(content: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    """Bytes as they arrive."""
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def joined(chunks: AsyncIterator[bytes]) -> bytes:
    """Bytes that arrived."""
    return b"".join([bytes(chunk) async for chunk in chunks])


async def write(
    place: Place,
    path: str,
    content: bytes,
    *,
    chunks: Callable[[], AsyncIterator[bytes]] | None = None,
    **how: Any,
) -> Written:
    """Write a file, as an action does."""
    settings: dict[str, Any] = {
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "overwrite": Overwrite.REFUSE,
        "verify": Guarantee.HASH,
        "owner": "a-run",
    }
    arriving = chunks() if chunks is not None else pieces(content)
    return await place.write(arriving, path, **{**settings, **how})
