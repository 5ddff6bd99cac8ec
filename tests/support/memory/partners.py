"""Records and leases of partners in memory, for tests."""

import time
from collections.abc import Sequence

from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import Partner


class MemoryPartners:
    """As the database keeps them.

    Attributes:
        most_sessions: The most leases of each name at a time.
    """

    def __init__(self, *partners: Partner) -> None:
        self._rows = {each.name: each for each in partners}
        self._leases: dict[str, dict[str, float]] = {}
        self.most_sessions: dict[str, int] = {}

    async def get(self, name: str) -> Partner | None:
        """One."""
        return self._rows.get(name)

    async def all(self) -> Sequence[Partner]:
        """All, by name."""
        return [self._rows[name] for name in sorted(self._rows)]

    async def put(self, partner: Partner, *, expected: int | None = None) -> Partner:
        """Insert or replace."""
        now = self._rows.get(partner.name)
        revision = 0 if now is None else now.revision
        if expected is not None and expected != revision:
            raise RuleViolation(f"{partner.name} was changed meanwhile")
        kept = partner.model_copy(update={"revision": revision + 1})
        self._rows[partner.name] = kept
        return kept

    async def remove(self, name: str) -> bool:
        """Remove a record."""
        return self._rows.pop(name, None) is not None

    async def lease(self, name: str, owner: str, slots: int, seconds: float) -> bool:
        """Take or prolong a lease."""
        now = time.monotonic()
        held = {who: end for who, end in self._leases.get(name, {}).items() if end > now}
        if owner not in held and len(held) >= slots:
            self._leases[name] = held
            return False
        held[owner] = now + seconds
        self._leases[name] = held
        self.most_sessions[name] = max(len(held), self.most_sessions.get(name, 0))
        return True

    async def release(self, name: str, owner: str) -> None:
        """Give a lease back."""
        self._leases.get(name, {}).pop(owner, None)
