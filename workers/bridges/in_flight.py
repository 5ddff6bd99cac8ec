"""Messages that a consumer has received and not yet settled."""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic

from workers.bridges.transport import Received


@dataclass(frozen=True)
class GivenBack:
    """A message that is to come again."""

    first: str | None
    """The message of its ordering key that was not accepted: itself, or one before it."""
    delay: int
    """Seconds until it comes again."""


Deciding = asyncio.Task[GivenBack | None]


@dataclass(eq=False, slots=True)
class InFlight(Generic[Received]):
    """A message that is being decided about or settled."""

    message: Received
    key: Hashable | None
    before: Deciding | None
    """The message of the same key that was received before this one."""
    task: Deciding = field(init=False)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Keeps calls that concern this message apart."""
    is_settled: bool = False
    timer: asyncio.TimerHandle | None = None
    extension: asyncio.Task[None] | None = None
