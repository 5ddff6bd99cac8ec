"""What a process knows of its own health, and the request to stop."""

import asyncio
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Health:
    """What a process, or one part of it, reports about itself."""

    ready: bool = False
    """It takes work."""
    problem: str | None = None
    """Why it does not, in one sentence, where that is not its start or its stop."""
    missing: Sequence[str] = ()
    """What the process needs and does not find, a sentence each: no part receives anything."""
    whole: "Health | None" = field(default=None, repr=False)
    """That of the process, where this is of a part."""
    _parts: dict[str, "Health"] = field(default_factory=dict[str, "Health"])

    def part(self, name: str) -> "Health":
        """The health of a part that may have problems of its own."""
        return self._parts.setdefault(name, Health(whole=self))

    def take(self) -> None:
        """Work is being taken."""
        self.ready, self.problem = True, None

    def refuse(self, problem: str) -> None:
        """No work is being taken, for this reason."""
        self.ready, self.problem = False, problem

    @property
    def is_blocked(self) -> bool:
        """Whether something is missing without which nothing may be received."""
        return bool((self.whole or self).missing)

    @property
    def problems(self) -> Sequence[str]:
        """Everything that is wrong, a sentence each."""
        own = [f"{name}: {part.problem}" for name, part in self._parts.items() if part.problem]
        return [*self.missing, *([self.problem] if self.problem else []), *own]


_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_CLOSED = signal.SIGHUP
"""The terminal, or the connection to it, was closed."""


@contextmanager
def stop_on_signals() -> Generator[asyncio.Event]:
    """An event that SIGTERM, SIGINT and SIGHUP set, instead of what they do otherwise."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    # What was started with nohup is to outlive its terminal.
    outlives = signal.getsignal(_CLOSED) is signal.SIG_IGN
    numbers = _SIGNALS if outlives else (*_SIGNALS, _CLOSED)
    for number in numbers:
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
