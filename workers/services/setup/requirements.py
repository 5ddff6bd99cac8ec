"""What an installation needs before anything works: how to see it, and how to make it."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from adapters.database import SchemaBehind
from adapters.ports import PortError
from workers.errors import TemporalUnreachable
from workers.services.errors import ServiceError
from workers.settings.errors import SettingsError

SELDOM_SECONDS: Final = 60.0
"""How long a good answer holds where questions are not to be asked often."""
CHECK_SECONDS: Final = 10.0
"""How long a check may take before what it asks counts as unavailable."""
_FAILURES: Final = (PortError, SchemaBehind, ServiceError, TemporalUnreachable)


class State(StrEnum):
    """What was found out about a requirement."""

    OK = "ok"
    MADE = "made"
    MISSING = "missing"
    DIFFERS = "differs"
    """It exists in another form; nothing is changed."""
    UNAVAILABLE = "unavailable"
    """What would answer does not, or refuses us."""
    UNKNOWN = "cannot be checked"
    """For want of a right, or because the check itself would change something."""
    LEFT_OUT = "left out"
    """No setting asks for it."""


_THERE: Final = frozenset({State.OK, State.MADE, State.LEFT_OUT})
_IN_THE_WAY: Final = frozenset({State.MISSING, State.DIFFERS, State.UNAVAILABLE})


@dataclass(frozen=True)
class Finding:
    """The answer of a check, or of an attempt to make what was missing."""

    state: State
    says: str
    """What was found, in one sentence."""
    cure: str | None = None
    """What to do, where it is not that of the requirement."""


Ask = Callable[[], Awaitable[Finding]]
"""Raises an error of a port or a service when what would answer does not."""


@dataclass(frozen=True)
class Requirement:
    """One thing that an installation needs."""

    name: str
    check: Ask
    """Looks, and changes nothing."""
    consequence: str
    """What happens without it, as the end of a sentence."""
    cure: str
    """What an operator does when docflow cannot make it: a command, or where to look."""
    make: Ask | None = None
    """Makes what is missing; None: docflow cannot."""
    watch: Ask | None = None
    """Checks again, at little cost, while a process works; None: it is not checked again."""
    needed: bool = True
    """Nothing is received without it. False: a warning is all."""

    async def found(self) -> "Result":
        """Check, once and in bounded time.

        Raises:
            SettingsError: A setting cannot be used.
        """
        return Result(self, await _asked(self.check))

    async def made(self) -> "Result":
        """Check, and make what is missing."""
        result = await self.found()
        if result.finding.state is not State.MISSING or self.make is None:
            return result
        return Result(self, await _asked(self.make, limited=False))

    async def watched(self) -> "Result | None":
        """Check again while a process works; None: nothing to look at."""
        return None if self.watch is None else Result(self, await _asked(self.watch))


@dataclass(frozen=True)
class Result:
    """A requirement and what was found."""

    requirement: Requirement
    finding: Finding

    @property
    def is_there(self) -> bool:
        """Whether nothing is left to do."""
        return self.finding.state in _THERE

    @property
    def problem(self) -> str | None:
        """Why nothing may be received, in one sentence; None: it may.

        What cannot be checked for want of a right is no reason: processes need fewer rights than
        those who set an installation up.
        """
        if self.finding.state not in _IN_THE_WAY or not self.requirement.needed:
            return None
        return f"{self.requirement.name}: {self.details}"

    @property
    def details(self) -> str:
        """What was found, what follows from it, and what to do."""
        finding, requirement = self.finding, self.requirement
        if self.is_there or finding.state is State.UNAVAILABLE:
            return finding.says
        return f"{finding.says}; {requirement.consequence}; {finding.cure or requirement.cure}"


def there(name: str, says: str) -> Result:
    """The result of what is seen in the settings alone."""
    return Result(_unasked(name), Finding(State.OK, says))


def left_out(name: str, why: str) -> Result:
    """The result of what no setting asks for."""
    finding = Finding(State.LEFT_OUT, why)
    return Result(_unasked(name), finding)


def unreadable(name: str, error: SettingsError) -> Result:
    """The result of what cannot be checked, because a setting is missing or wrong."""
    finding = Finding(State.UNAVAILABLE, "; ".join(error.problems))
    return Result(_unasked(name), finding)


def _unasked(name: str) -> Requirement:
    async def check() -> Finding:
        raise AssertionError("there is nothing to check")

    return Requirement(name, check, consequence="", cure="")


async def all_of(requirements: Iterable[Requirement], *, only_check: bool) -> AsyncIterator[Result]:
    """Check requirements one after the other; make what is missing, unless `only_check` is set."""
    for requirement in requirements:
        yield await (requirement.found() if only_check else requirement.made())


def seldom(check: Ask, seconds: float = SELDOM_SECONDS) -> Ask:
    """A check whose good answer holds for a while: each one is billed, or counts to a limit."""
    seen, answer = -math.inf, Finding(State.UNKNOWN, "")

    async def asked() -> Finding:
        nonlocal seen, answer
        time = asyncio.get_running_loop().time
        if time() - seen > seconds:
            answer = await check()
            seen = time() if answer.state is State.OK else -math.inf
        return answer

    return asked


def not_tried(requirement: Requirement, why: str) -> Requirement:
    """A requirement whose check would change something, and is not made."""

    async def check() -> Finding:
        return Finding(State.UNKNOWN, why)

    return replace(requirement, check=check)


async def _asked(ask: Ask, *, limited: bool = True) -> Finding:
    try:
        async with asyncio.timeout(CHECK_SECONDS if limited else None):
            return await ask()
    except TimeoutError:
        return Finding(State.UNAVAILABLE, f"there is no answer within {CHECK_SECONDS:.0f} s")
    except _FAILURES as error:
        return Finding(State.UNAVAILABLE, " ".join(str(error).split()))
