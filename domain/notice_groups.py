"""Notices of many runs that wait for one cause: the first ones each, the others in one of them."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

ALONE: Final = 3
"""Notices of one cause that are sent by themselves."""
HELD: Final = timedelta(minutes=5)
"""For so long further ones are held, and then sent as one."""
_CAUSES: Final = 1_000
"""Causes that are remembered at most."""


@dataclass
class _Group:
    alone: set[str] = field(default_factory=set[str])
    held: dict[str, float] = field(default_factory=dict[str, float])
    """Notices that are held, and when they came."""
    covered: set[str] = field(default_factory=set[str])
    """Those that another one has counted."""
    last: float = 0.0


@dataclass(frozen=True, slots=True)
class Held:
    """A notice that comes back later."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Due:
    """A notice that is sent now.

    Attributes:
        others: For how many others of its cause it stands; 0: for itself alone.
    """

    others: int = 0


class NoticeGroups:
    """Decides of each notice whether it is sent now, comes back, or was counted by another.

    It remembers nothing over the end of its process: notices that were held come back, and the
    first ones are sent by themselves again.
    """

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    def decide(self, cause: str, notice: str, now: float) -> Held | Due | None:
        """What becomes of a notice.

        Args:
            cause: What it shares with others.
            notice: Its id; the same each time that it comes.
            now: Seconds.

        Returns:
            None: another one has counted it.
        """
        self._forget(now)
        group = self._groups.setdefault(cause, _Group())
        group.last = now
        if notice in group.covered:
            return None
        if notice in group.alone or len(group.alone) < ALONE:
            group.alone.add(notice)
            return Due()
        left = HELD.total_seconds() - (now - group.held.setdefault(notice, now))
        if left > 0:
            return Held(timedelta(seconds=left))
        return Due(len(group.held) - 1)

    def sent(self, cause: str, notice: str) -> None:
        """A notice was sent, and with it those that it has counted."""
        group = self._groups.get(cause)
        if group is not None and notice in group.held:
            group.covered |= group.held.keys() - {notice}
            group.held.clear()

    def _forget(self, now: float) -> None:
        old = now - 4 * HELD.total_seconds()
        gone = [cause for cause, group in self._groups.items() if group.last < old]
        if len(self._groups) - len(gone) > _CAUSES:
            gone = [*self._groups]
        for cause in gone:
            del self._groups[cause]
