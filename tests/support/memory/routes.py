"""Rules of routes in memory."""

from collections.abc import Sequence

from workflows.transfers.routes import RouteRemark, RouteRule, require_unchanged


class MemoryRoutes:
    """A `RouteStore` for tests."""

    def __init__(self, rules: Sequence[RouteRule] = ()) -> None:
        self._rules = {(each.queue, each.rule): each for each in rules}
        self._trail: list[tuple[RouteRule, str]] = []
        self._version = 0
        self.reads = 0
        """How often all rules were read."""
        self.foreign: Sequence[RouteRemark] = ()
        """Rows of which no rule can be made."""

    async def version(self) -> str:
        """A number."""
        return str(self._version)

    async def rules(self) -> Sequence[RouteRule]:
        """All of them."""
        self.reads += 1
        return list(self._rules.values())

    async def unusable(self) -> Sequence[RouteRemark]:
        """What a test has put there."""
        return self.foreign

    async def put(self, rule: RouteRule, *, expected: RouteRule | None = None) -> None:
        """Insert or replace a rule."""
        key = (rule.queue, rule.rule)
        if expected is not None:
            require_unchanged(self._rules.get(key), expected)
        self._note(rule, "changed" if key in self._rules else "added")
        self._rules[key] = rule

    async def remove(self, queue: str, rule: str, by: str | None) -> bool:
        """Remove a rule; False: there is none."""
        found = self._rules.pop((queue, rule), None)
        if found is None:
            return False
        self._note(found.model_copy(update={"by": by}), "removed")
        return True

    async def trail(self, limit: int = 200) -> Sequence[tuple[RouteRule, str]]:
        """Changes, the newest first."""
        return list(reversed(self._trail))[:limit]

    def _note(self, rule: RouteRule, change: str) -> None:
        self._version += 1
        self._trail.append((rule, change))
