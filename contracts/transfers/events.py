"""Events that say that a file is there."""

import hashlib
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from contracts.base import Contract

EVENT_BYTES: Final = 64 * 1024
"""An event that is longer is refused, recorded with its size."""
CHAIN: Final = 32
"""Events of one chain at most: `FireEvent` beyond it is a loop."""
DEPTH: Final = "docflowdepth"
VISITED: Final = "docflowvisited"
"""Extensions of an event that `FireEvent` sent: `depth`, and `visited` joined by blanks."""

Attribute = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Visit = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class RouteKey(Contract):
    """What a route is looked up by; compared exactly, upper and lower case differ."""

    account_id: Attribute
    """`accountId` of the data."""
    source: Attribute
    type: Attribute
    subject: Attribute


class FileNotice(Contract):
    """A CloudEvent that was checked: every required field is there."""

    id: Attribute
    source: Attribute
    type: Attribute
    subject: Attribute
    account_id: Attribute
    time: datetime
    """Of the event; its arrival where the event has none. Names with dates are resolved from it."""
    time_given: bool = True
    """False: the event has none."""
    data: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)
    """Further facts, as `fileName` or `path`; names in settings may refer to them."""
    depth: int = 0
    """How many events led to it by `FireEvent`."""
    visited: tuple[Visit, ...] = Field(default=(), max_length=CHAIN)
    """See `visit_of`: what led to it, the first one first."""

    @property
    def key(self) -> RouteKey:
        """What its route is looked up by."""
        return RouteKey(
            account_id=self.account_id, source=self.source, type=self.type, subject=self.subject
        )


def visit_of(queue: str, job: str, subject: str) -> str:
    """A visit of a chain of events: the same one twice is a loop."""
    return f"{queue}/{job}/{hashlib.sha256(subject.encode()).hexdigest()[:12]}"
