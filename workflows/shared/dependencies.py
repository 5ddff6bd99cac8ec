"""What docflow itself needs, and how a run waits for it."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from workflows.shared.contracts import Contract

Problem = Annotated[str, Field(max_length=1_500)]
Setting = Annotated[str, Field(max_length=100)]
DependencyName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
"""Which one of a kind of which there are many."""


class Dependency(StrEnum):
    """What no run can do without."""

    DATABASE = "database"
    BLOB_STORE = "blob-store"
    SCRATCH_DISK = "scratch-disk"
    CLOUD = "cloud"
    """The queues, topics and control planes of AWS."""
    SCANNER = "scanner"
    """What looks for viruses."""
    PARTNER = "partner"
    """An endpoint that files are moved from or to; there are many, each with a name."""
    TARGET = "target"
    """A database of another team that rows go to; there are many, each with a name."""

    @property
    def label(self) -> str:
        """As it is called in a sentence."""
        return self.value.replace("-", " ")


def label_of(dependency: Dependency, name: str | None = None) -> str:
    """A dependency as it is called in a sentence, with its name where there are many."""
    return dependency.label if name is None else f"{dependency.label} {name}"


class WaitInput(Contract):
    """Input of a wait."""

    dependency: Dependency
    name: DependencyName | None = None
    """Which one, where there are many."""
    room: int = Field(default=0, ge=0)
    """Bytes that the step needs on the scratch disk, or at the partner; 0: not known."""
    problem: Problem | None = None
    """What is known of the outage: the wait ends as well when it is another problem by now."""
    settings: tuple[Setting, ...] = Field(default=(), max_length=10)
    """Settings that are known to be wrong."""

    @property
    def label(self) -> str:
        """As it is called in a sentence."""
        return label_of(self.dependency, self.name)


class Recovery(Contract):
    """Result of a wait: the dependency answers, or cannot be used for another reason."""

    was_down: bool
    """False: it answered when it was first asked, so that the failure may be the document's own."""
    problem: Problem | None = None
    """Why it still cannot be used; None: it answers."""
    settings: tuple[Setting, ...] = Field(default=(), max_length=10)
    """Settings that are wrong now."""


class OutageInput(Contract):
    """Input of the run that stands for one outage."""

    dependency: Dependency
    name: DependencyName | None = None
    """Which one, where there are many."""
    since: datetime
    problem: Problem
    """What it answered, or why it did not."""
    settings: tuple[Setting, ...] = Field(default=(), max_length=10)
    """Settings that are wrong: the dependency is there and refuses us, or has no such address."""
    room: int = Field(default=0, ge=0)
    """Bytes without which it is not over, on the scratch disk or at the partner; 0: not known."""
    notices: bool = False
    """People are sent notices; an order of a release that had none asks for none."""

    @property
    def label(self) -> str:
        """As it is called in a sentence."""
        return label_of(self.dependency, self.name)

    @property
    def workflow_id(self) -> str:
        """Of its run."""
        return outage_id(self.dependency, self.name)


class OutageStatus(Contract):
    """Result of the `status` query of an outage, and of its run."""

    dependency: Dependency
    name: DependencyName | None = None
    """Which one, where there are many."""
    since: datetime
    problem: Problem
    settings: tuple[Setting, ...] = Field(default=(), max_length=10)
    ended: datetime | None = None


OUTAGE_PREFIX: Final = "outage"
"""What the workflow ids of outages begin with, up to the slash."""


def outage_id(dependency: Dependency, name: str | None = None) -> str:
    """The workflow id of an outage: there is one at a time, of each where there are many."""
    id = f"{OUTAGE_PREFIX}/{dependency}"
    return id if name is None else f"{id}/{name}"


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
