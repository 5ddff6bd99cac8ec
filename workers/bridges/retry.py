"""Retries of a message that cannot be accepted now, while it stays in flight."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Final

from workers.services.verdicts import Abandon, Verdict

Accept = Callable[[bytes, int, str | None], Awaitable[Verdict]]
"""Body, deliveries before this one, message id -> what becomes of the message."""
GiveUp = Callable[[bytes, int, str | None, str], Awaitable[Verdict]]
"""Body, deliveries before this one, message id, why it is not accepted -> what becomes of it."""

LONGEST_DELAY: Final = 300
"""Seconds after which a message that is given back comes again, at most."""


async def sleep(seconds: float) -> bool:
    """A pause that nothing ends early."""
    await asyncio.sleep(seconds)
    return False


@dataclass(frozen=True)
class Retry:
    """Pauses between attempts, in seconds, and how long they continue."""

    first_pause: float = 0.5
    longest_pause: float = 30.0
    hold: float = 60.0
    """A message is held for so long before it is given back."""

    def pauses(self) -> Iterator[float]:
        """Growing pauses with jitter, without end."""
        pause = self.first_pause
        while True:
            yield pause * random.uniform(0.5, 1.0)
            pause = min(pause * 2, self.longest_pause)

    async def run(
        self,
        accept: Accept,
        raw: bytes,
        delivery_count: int,
        message_id: str | None,
        pause: Callable[[float], Awaitable[bool]] = sleep,
    ) -> Verdict:
        """The verdict on a message; while it is to abandon it, `accept` is called again.

        Every message that is given back uses up a delivery, and after ten the queue dead-letters
        it, so it is held for a while first. Its lease must be extended meanwhile.

        Args:
            accept: Decides.
            raw: The body.
            delivery_count: Deliveries before this one.
            message_id: As the sender set it.
            pause: Waits for so many seconds; True ends the retries.
        """
        clock = asyncio.get_running_loop().time
        until, pauses = clock() + self.hold, self.pauses()
        while True:
            verdict = await accept(raw, delivery_count, message_id)
            if not isinstance(verdict, Abandon):
                return verdict
            seconds = next(pauses)
            if clock() + seconds > until or await pause(seconds):
                return verdict


def redelivery_delay(deliveries: int) -> int:
    """Seconds until a message comes again: at once the first time, then later and later."""
    return min(2 ** min(deliveries, 10) - 1, LONGEST_DELAY)
