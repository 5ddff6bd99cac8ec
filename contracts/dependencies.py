"""What docflow itself needs, and how a run waits for it."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from contracts.base import Contract

Problem = Annotated[str, Field(max_length=1_500)]
Setting = Annotated[str, Field(max_length=100)]


class Dependency(StrEnum):
    """What no run can do without."""

    DATABASE = "database"
    BLOB_STORE = "blob-store"
    SCRATCH_DISK = "scratch-disk"
    CLOUD = "cloud"
    """The queues, topics and control planes of AWS."""

    @property
    def label(self) -> str:
        """As it is called in a sentence."""
        return self.value.replace("-", " ")


class Awaited(Contract):
    """Input of a wait."""

    dependency: Dependency
    room: int = Field(default=0, ge=0)
    """Bytes that the step needs on the scratch disk; 0: not known."""
    problem: Problem | None = None
    """What is known of the outage: the wait ends as well when it is another problem by now."""
    settings: tuple[Setting, ...] = Field(default=(), max_length=10)
    """Settings that are known to be wrong."""


class Recovery(Contract):
    """Result of a wait: the dependency answers, or cannot be used for another reason."""

    was_down: bool
    """False: it answered when it was first asked, so that the failure may be the document's own."""
    problem: Problem | None = None
    """Why it still cannot be used; None: it answers."""
    settings: tuple[Setting, ...] = Field(default=(), max_length=10)
    """Settings that are wrong now."""


class OutageOrder(Contract):
    """Input of the run that stands for one outage."""

    dependency: Dependency
    since: datetime
    problem: Problem
    """What it answered, or why it did not."""
    settings: tuple[Setting, ...] = Field(default=(), max_length=10)
    """Settings that are wrong: the dependency is there and refuses us, or has no such address."""
    room: int = Field(default=0, ge=0)
    """Bytes without which it is not over, on the scratch disk; 0: not known."""
    notices: bool = False
    """People are sent notices; an order of a release that had none asks for none."""


class OutageStatus(Contract):
    """Result of the `status` query of an outage, and of its run."""

    dependency: Dependency
    since: datetime
    problem: Problem
    settings: tuple[Setting, ...] = Field(default=(), max_length=10)
    ended: datetime | None = None


OUTAGE_PREFIX: Final = "outage"
"""What the workflow ids of outages begin with, up to the slash."""


def outage_id(dependency: Dependency) -> str:
    """The workflow id of an outage: there is one at a time."""
    return f"{OUTAGE_PREFIX}/{dependency}"


WAITING: Final = "waiting"
"""Search attribute `State` of a run that waits for a dependency, and of no person.

Its `WaitingFor` is the workflow id of the outage."""
OUTAGE: Final = "Outage"
"""Name of the workflow type."""
WAITS: Final = "waits"
"""Entry of a run's memo: what it waits for and since when, where `WaitingFor` does not say it."""
PROBLEM: Final = "problem"
SETTINGS: Final = "settings"
"""Memo of such a run, as the fields of its order."""
OUTAGES: Final = "outages"
"""Search attribute `Pipeline` of outages, which belong to none."""


class OutageState(StrEnum):
    """Search attribute `State` of an outage."""

    OPEN = "open"
    OVER = "over"
