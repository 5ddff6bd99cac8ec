"""Waiting for what docflow itself needs, with one check for all that wait."""

import asyncio
import logging
import random
import shutil
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from activities.shared.scratch import disk_full, scratch_folder
from adapters.ports.errors import PortError, Unavailable
from adapters.ports.records import Outages
from workflows.shared.dependencies import (
    Dependency,
    OutageInput,
    Recovery,
    WaitInput,
    label_of,
    outage_id,
)
from workflows.shared.errors import UNAVAILABLE

if TYPE_CHECKING:
    from adapters.database.runs import SqlRuns

logger = logging.getLogger(__name__)

T = TypeVar("T")
Probe = Callable[[], Awaitable[None]]
"""Sees at little cost whether a dependency can be used; raises `Unavailable` when it cannot."""
NamedProbe = Callable[[str], Awaitable[int | None]]
"""The same for one of many, by its name; bytes that it has room for, where it reports them."""

PROBE_SECONDS: Final = 10.0
FAILURE_COUNTS_SECONDS: Final = 4.0
"""How long a failed check answers later questions as well."""
SHORTEST_SECONDS: Final = 5.0
_Which = tuple[Dependency, str | None]
LONGEST_SECONDS: Final = 60.0
_PROBED_BYTES: Final = 1 << 20


class Dependencies:
    """Answers runs that wait for a dependency; one object for everything in a process.

    Args:
        probes: How to check each dependency that this process uses.
        settings: Names of the settings that say where it is and who asks.
        outages: Shows operators that something is down.
        scratch: Folder for temporary files.
        named: How to check each dependency of which there are many.
        runs: Where it is noted that a run waits; None: only Temporal knows it.
    """

    def __init__(
        self,
        probes: Mapping[Dependency, Probe],
        settings: Mapping[Dependency, Sequence[str]],
        outages: Outages,
        scratch: Path,
        named: Mapping[Dependency, NamedProbe] | None = None,
        runs: "SqlRuns | None" = None,
    ) -> None:
        self._scratch, self._runs = scratch, runs
        self._settings, self._outages = settings, outages
        self._named = named or {}
        self._checks: dict[_Which, _Check] = {
            (dependency, None): self._check_of(dependency, None, probe)
            for dependency, probe in probes.items()
        }

    def _check_of(
        self,
        dependency: Dependency,
        name: str | None,
        probe: Callable[[], Awaitable[int | None]],
    ) -> "_Check":
        settings = self._settings.get(dependency, ())
        return _Check(dependency, name, probe, settings, self._outages)

    def _check(self, awaited: WaitInput) -> "_Check":
        which = (awaited.dependency, awaited.name)
        if which not in self._checks and awaited.name is not None:
            probe = partial(self._named[awaited.dependency], awaited.name)
            self._checks[which] = self._check_of(*which, probe)
        return self._checks[which]

    @activity.defn(name="dependencies.wait")
    async def wait(self, awaited: WaitInput) -> Recovery:
        """See whether a dependency answers; the server asks again, for as long as it takes.

        Returns:
            That it answers; or another problem than the one that is known.

        Raises:
            ApplicationError: `Unavailable`, with the delay until the next attempt.
        """
        info = activity.info()
        check = self._check(awaited)
        failure = await check.failure(info.task_queue)
        if failure is None and awaited.room:
            failure = self._missing_room(awaited, check.free)
            await _apart(check.room(failure, info.task_queue))
        if failure is not None and awaited.problem is not None:
            now = check.outage(failure)
            if (now.problem, now.settings) != (awaited.problem, awaited.settings):
                return Recovery(was_down=True, problem=now.problem, settings=now.settings)
        await self._note(info, awaited, waits=failure is not None)
        if failure is not None:
            raise ApplicationError(
                str(failure),
                type=UNAVAILABLE,
                next_retry_delay=delay(info.attempt),
                # One of many that wait: the check logs when the state of the dependency changes.
                category=ApplicationErrorCategory.BENIGN,
            )
        return Recovery(was_down=info.attempt > 1)

    async def _note(self, info: activity.Info, awaited: WaitInput, *, waits: bool) -> None:
        """Let lists show that a run waits, once, or that it does no longer.

        While the database itself cannot be used, nothing lists runs.
        """
        run, is_first = info.workflow_id, info.attempt == 1
        if self._runs is None or run is None or awaited.dependency is Dependency.DATABASE:
            return
        with suppress(PortError):
            if waits and is_first:
                await self._runs.wait(run, outage_id(awaited.dependency, awaited.name))
            elif not (waits or is_first):
                await self._runs.resume(run)

    def _missing_room(self, awaited: WaitInput, free: int | None) -> Unavailable | None:
        room = awaited.room
        if awaited.name is None:
            is_free = shutil.disk_usage(self._scratch).free >= room
            return None if is_free else disk_full(room)
        if free is None or free >= room:
            return None
        text = f"{awaited.name} has no room for {room:,} bytes"
        return Unavailable(text, awaited.dependency, name=awaited.name, room=room)


def delay(attempt: int) -> timedelta:
    """Until the next attempt: 5 s, later up to 60 s; spread, so that not all come back at once."""
    longest = min(SHORTEST_SECONDS * 2.0 ** min(attempt, 10), LONGEST_SECONDS)
    return timedelta(seconds=random.uniform(max(SHORTEST_SECONDS, longest / 2), longest))


def scratch_probe(scratch: Path) -> Probe:
    """Writes to the scratch disk."""

    def write() -> None:
        with scratch_folder(scratch) as folder:
            (folder / "probe").write_bytes(bytes(_PROBED_BYTES))

    async def probe() -> None:
        await asyncio.to_thread(write)

    return probe


async def _apart(work: Coroutine[Any, Any, T]) -> T:
    """Do what is about a dependency, and not about the run and message that happen to ask."""
    return await asyncio.create_task(work, context=Context())


class _State:
    """What was last logged of a dependency: a line is logged when that changes."""

    def __init__(self, over: str) -> None:
        self._over = over
        self._problem: str | None = None

    def show(self, problem: str | None) -> None:
        """Log a problem, or that it is over when there is none."""
        if problem != self._problem:
            self._problem = problem
            logger.warning("%s", self._over if problem is None else problem)


class _Check:
    """Checks one dependency, once for all that ask at a time.

    A success counts for those who asked before the check began: a later caller may have seen a
    failure that the check has not. A failure counts for some seconds.
    """

    def __init__(
        self,
        dependency: Dependency,
        name: str | None,
        probe: Callable[[], Awaitable[int | None]],
        settings: Sequence[str],
        outages: Outages,
    ) -> None:
        self.free: int | None = None
        """Bytes that it had room for when it was checked last; None: it does not report it."""
        self._dependency, self._name, self._probe = dependency, name, probe
        self._label = label_of(dependency, name)
        self._settings, self._outages = tuple(settings), outages
        self._turn = asyncio.Lock()
        self._next: asyncio.Task[Unavailable | None] | None = None
        self._failure: Unavailable | None = None
        self._failed_at = 0.0
        self._state = _State(f"the {self._label} answers again")
        self._room = _State(f"the {self._label} has room again")

    async def failure(self, task_queue: str) -> Unavailable | None:
        """Check, or share a check that has not begun; why the dependency cannot be used."""
        if (failure := self._recent_failure()) is not None:
            return failure
        if self._next is None:
            self._next = asyncio.create_task(self._run(task_queue), context=Context())
        # A cancelled caller does not end the check for the others.
        return await asyncio.shield(self._next)

    def _recent_failure(self) -> Unavailable | None:
        is_recent = time.monotonic() - self._failed_at < FAILURE_COUNTS_SECONDS
        return self._failure if is_recent else None

    async def _run(self, task_queue: str) -> Unavailable | None:
        async with self._turn:
            self._next = None
            self._failure = await self._probed()
            self._state.show(self._failure and f"the {self._label} cannot be used: {self._failure}")
            if self._failure is not None:
                self._failed_at = time.monotonic()
                await self._outages.begin(self.outage(self._failure), task_queue)
            return self._failure

    async def room(self, failure: Unavailable | None, task_queue: str) -> None:
        """Show operators whether there is room for what a run needs, which differs from others'."""
        self._room.show(failure and f"the {self._label} is full")
        if failure is not None:
            await self._outages.begin(self.outage(failure), task_queue)

    async def _probed(self) -> Unavailable | None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                self.free = await self._probe()
        except TimeoutError:
            return Unavailable(f"the {self._label} does not answer within {PROBE_SECONDS:.0f} s")
        except Unavailable as error:
            return error
        except PortError as error:
            # It refuses something, so it answers.
            logger.info("the %s answers: %s", self._label, error)
        return None

    def outage(self, failure: Unavailable) -> OutageInput:
        """The outage as it is now."""
        return OutageInput(
            dependency=self._dependency,
            name=self._name,
            since=datetime.now(UTC),
            problem=str(failure)[:1_500],
            settings=self._settings if failure.misconfigured else (),
            room=failure.room,
            notices=True,
        )
