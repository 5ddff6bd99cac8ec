"""A single event of one account beside a burst of another one, on the same queue.

The whole burst is taken in before any worker runs, so that it waits when the first single event
comes. A single event counts only where runs of the burst were open before and after it.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.report import Table, at_most, middle, percentile
from benchmarks.transfers.events import Installation, abreast, opened
from workflows.shared import attributes
from workflows.transfers.events import FILE_EVENT, FILE_JOB

SECONDS: Final = 2.0
BURST: Final = "A"
"""Account of the burst."""
OTHER: Final = "B"
_ABREAST: Final = 8
"""Starts in flight: with more of them a slow machine lets each time out, and none is accepted."""
_PROJECT: Final = attributes.PROJECT_ID.name
_OPEN: Final = (
    f"WorkflowType IN ('{FILE_EVENT}', '{FILE_JOB}') AND ExecutionStatus = 'Running' "
    f"AND {_PROJECT} = '{BURST}'"
)
_DONE: Final = (
    f"WorkflowType = '{FILE_JOB}' AND ExecutionStatus = 'Completed' AND {_PROJECT} = '{BURST}'"
)


@dataclass(frozen=True)
class Single:
    """One event that was carried out.

    Attributes:
        seconds: From its message to its status.
        before: Runs of the burst that were open when it came.
        after: Those that were open when it had ended.
    """

    seconds: float
    before: int
    after: int


@dataclass
class Measurement:
    """What was seen, however far it came.

    Attributes:
        wanted: Single events to be measured.
        taken_in: Events of the burst that Temporal has accepted.
        singles: Those that ended beside open runs of the burst.
        carried_out: Transfers of the burst that ended between the first and the last of them.
        load: Of the machine, at the end.
        late: Seconds that the whole was given, where they were not enough.
        waited: Seconds that the last event had waited by then; None: none was under way.
    """

    wanted: int
    taken_in: int = 0
    singles: list[Single] = field(default_factory=list[Single])
    carried_out: int = 0
    load: float = 0.0
    late: float | None = None
    waited: float | None = None

    def verdict(self) -> str:
        """Whether the target is met; what was not seen is not a verdict."""
        seconds = [each.seconds for each in self.singles]
        # One in twenty may be slow. What has not ended is as slow as it is by now at least.
        slow = sum(each > SECONDS for each in (*seconds, self.waited or 0.0))
        if slow > self.wanted * 0.05 and len(seconds) < self.wanted:
            return f"{slow} of {self.wanted} took more than {SECONDS:.0f} s: **not met**"
        missing = f"{len(seconds)} of {self.wanted} single events were measured: **not measured**"
        if self.late is not None:
            reason = f"{self.late:,.0f} s were over, with {self.taken_in:,} of the burst taken in"
            return f"{missing}; {reason}: the machine is too slow for a burst of this size"
        if len(seconds) < self.wanted:
            return f"{missing}; the burst had ended by then: take a larger one"
        if self.carried_out == 0:
            return "nothing of the burst was carried out meanwhile: **not measured**"
        return at_most(percentile(seconds, 0.95), SECONDS, " s")


async def beside(folder: Path, burst: int, singles: int, limit: float) -> Table:
    """One event after the other of an account while another account's burst is carried out.

    Args:
        folder: Takes everything.
        burst: Events of the other account.
        singles: Events that are measured.
        limit: Seconds for the whole of it, without the start of its servers.
    """
    async with opened(folder, real=False) as installation:
        measured = await measure(installation, burst, singles, limit)
    return table(burst, measured)


async def measure(
    installation: Installation, burst: int, singles: int, limit: float
) -> Measurement:
    """Take the burst in, begin to work, and send single events."""
    found = Measurement(singles)
    clock = asyncio.get_running_loop().time
    began: float | None = None

    async def take_in(_: int) -> None:
        await installation.transfer(BURST)
        found.taken_in += 1

    try:
        async with asyncio.timeout(limit):
            await abreast(burst, take_in, _ABREAST)
            async with installation.working():
                while not await _count(installation, _DONE):
                    await asyncio.sleep(0.1)
                done_before = await _count(installation, _DONE)
                before = await _count(installation, _OPEN)
                while before and len(found.singles) < singles:
                    began = clock()
                    seconds = await installation.single(OTHER)
                    began = None
                    after = await _count(installation, _OPEN)
                    if after:
                        found.singles.append(Single(seconds, before, after))
                    found.carried_out = await _count(installation, _DONE) - done_before
                    before = after
    except TimeoutError:
        found.late = limit
        found.waited = None if began is None else clock() - began
    found.load = os.getloadavg()[0]
    return found


async def _count(installation: Installation, query: str) -> int:
    return (await installation.client.count_workflows(query)).count


def table(burst: int, found: Measurement) -> Table:
    """The figures, as far as there are any."""
    columns: Mapping[str, str] = {
        "events": f"{len(found.singles)} of {found.wanted}",
        "median s": "-",
        "p95 s": "-",
        "open runs of the burst, first and last": "-",
        "its transfers that ended meanwhile": f"{found.carried_out:,}",
        "load": f"{found.load:.1f}",
    }
    if found.singles:
        seconds = [each.seconds for each in found.singles]
        columns |= {
            "median s": f"{middle(seconds):.2f}",
            "p95 s": f"{percentile(seconds, 0.95):.2f}",
            "open runs of the burst, first and last": (
                f"{found.singles[0].before:,}, {found.singles[-1].after:,}"
            ),
        }
    made = Table(
        f"A single event beside {burst:,} of another account, on the same queue", tuple(columns)
    )
    made.add(*columns.values())
    made.notes.append(found.verdict())
    return made
