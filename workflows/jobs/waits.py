"""How stages and batches say what they wait for, up to their job."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from temporalio import workflow

from contracts.dependencies import WAITING, WAITS, outage_id
from contracts.jobs import JobWait, TaskAgain
from workflows import attributes
from workflows.waiting import CurrentWait

REPORTED: Final = "jobs-waits-reported"
"""Runs of releases that did not report their waits replay without."""
LONG: Final = 15.0
"""Seconds from which on a pause before a task is tried again is a wait to be reported."""
MOST_CHANGES: Final = 20
"""Reports of one batch, so that one whose wait comes and goes keeps a short history."""


def wait_of(current: CurrentWait | None) -> JobWait | None:
    """A wait for what docflow needs."""
    if current is None:
        return None
    awaited = current.awaited
    outage = outage_id(awaited.dependency, awaited.name)
    what = f"the {awaited.label}: {current.problem}"
    return JobWait(what=what[:400], since=current.since, outage=outage)


def show_wait(wait: JobWait | None) -> None:
    """Show in lists what a job waits for; None: it waits no longer."""
    if wait is None:
        workflow.upsert_search_attributes(attributes.not_waiting("running"))
        workflow.upsert_memo({WAITS: None})
        return
    awaited = attributes.WAITING_FOR
    workflow.upsert_search_attributes(
        [
            attributes.STATE.value_set(WAITING),
            attributes.WAITING_SINCE.value_set(wait.since),
            awaited.value_set(wait.outage) if wait.outage else awaited.value_unset(),
        ]
    )
    workflow.upsert_memo({WAITS: sentence(wait)})


def sentence(wait: JobWait) -> str:
    """What a job waits for, in lists."""
    return f"waits since {wait.since:%Y-%m-%d %H:%M} UTC for {wait.what}"


class LaterTasks:
    """Tasks of a batch that are tried again after a long pause, until they have ended."""

    def __init__(self) -> None:
        self._since: dict[int, datetime] = {}
        self._reason = ""

    def begun(self, positions: Iterable[int], again: Iterable[TaskAgain], why: str) -> None:
        """Some tasks were tried; some of them are tried again."""
        later = {each.position: each for each in again if each.seconds >= LONG}
        for position in positions:
            if position not in later:
                self._since.pop(position, None)
        for position in later:
            self._since.setdefault(position, workflow.now())
            self._reason = why

    @property
    def wait(self) -> JobWait | None:
        """The longest wait of them; None: none waits."""
        if not self._since:
            return None
        number = len(self._since)
        tasks = "1 task needs" if number == 1 else f"{number:,} tasks need"
        why = f": {self._reason}" if self._reason else ""
        return JobWait(what=f"what {tasks}{why}", since=min(self._since.values()))
