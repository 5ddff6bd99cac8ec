"""What people do with rules of routes, and the schema of job settings.

The JSON Schema of `jobsettings.json`, for editors and for other programs.

`python -m workers.transfers.routes > docs/reference/jobsettings.schema.json` writes it.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final, cast

from pydantic import ValidationError

from activities.transfers.reception import RouteCache
from activities.transfers.records import Transfer
from activities.transfers.store import SqlTransferStore
from adapters.ports.transfers import RouteStore
from workers.shared.services.bodies import printable
from workers.shared.services.errors import Conflict, InvalidRequest, NotFound, Refused
from workers.shared.services.identity import Identity, require_operator
from workers.shared.services.versions import require_version
from workflows.shared.contracts import problem_text
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import EVENT_BYTES, RouteKey, TransferStatus
from workflows.transfers.job_settings import schema
from workflows.transfers.routes import LABELS, RouteRemark, RouteRule, RouteTable, RouteVerdict

_UNMATCHED: Final = 50
_TIES: Final = 100
_AT_THE_TOP: Final = ("source", "type", "subject")
_IN_EVENTS: Final = {**LABELS, "account_id": "data.accountId"}


@dataclass(frozen=True)
class RouteListing:
    """Rules as they stand."""

    rules: Sequence[RouteRule]
    """By queue and name."""
    unusable: Sequence[RouteRemark] = ()
    """Rows of which no rule can be made: they never take an event."""
    ties: Sequence[tuple[RouteRule, RouteRule]] = ()
    """Pairs that could take the same event, a hundred at most; the first by queue and name gets
    it."""


@dataclass(frozen=True, slots=True)
class UnmatchedEvents:
    """Events that no rule matched and that no person has assigned."""

    rows: Sequence[Transfer]
    """The newest first, 50 at most."""
    total: int
    """How many there are."""


class RouteService:
    """Every operation on rules; a refusal is a `ServiceError`.

    Args:
        store: Where they are kept.
        transfers: Rows of the events that nothing matched.
        queues: Queues that exist; a rule may name no other.
    """

    def __init__(
        self, store: RouteStore, transfers: SqlTransferStore, queues: Sequence[str]
    ) -> None:
        self._store = store
        self._transfers = transfers
        self._queues = queues
        self._cache = RouteCache(store, seconds=0)

    @property
    def queues(self) -> Sequence[str]:
        """Names that a rule may have as its queue."""
        return self._queues

    async def listing(
        self, who: Identity, queue: str | None = None, text: str = ""
    ) -> RouteListing:
        """Rules, with what is wrong with any.

        Args:
            who: Who asks.
            queue: Only those of this queue.
            text: Only those in which an attribute or name holds it, in upper or lower case.
        """
        require_operator(who, "routes")
        table = await self._cache.table()
        rules = sorted(table.rules, key=lambda each: (each.queue, each.rule))
        wanted = text.strip().casefold()
        return RouteListing(
            [each for each in rules if queue in (None, each.queue) and _holds(each, wanted)],
            await self._cache.unusable(),
            await asyncio.to_thread(lambda: list(itertools.islice(table.all_ties(), _TIES))),
        )

    async def get(self, who: Identity, queue: str, rule: str) -> RouteRule:
        """One rule.

        Raises:
            NotFound: There is no such rule.
        """
        require_operator(who, "routes")
        return self._of(await self._cache.table(), queue, rule)

    async def add(self, who: Identity, fields: Mapping[str, Any]) -> RouteRule:
        """Add a rule; without a name it is given the next free number of its queue.

        Args:
            who: Who adds it.
            fields: Of a `RouteRule`.

        Raises:
            InvalidRequest: A field is missing or wrong; the message names all of them.
            Refused: The queue does not exist, the name is taken, or it ties with another rule.
        """
        require_operator(who, "routes")
        table = await self._cache.table()
        named = dict(fields)
        named.setdefault("rule", _next_name(table, str(named.get("queue", ""))))
        rule = _rule({**named, "by": who.subject, "changed_at": datetime.now(UTC)})
        self._check_queue(rule.queue)
        if _find(table, rule.queue, rule.rule) is not None:
            raise Refused(f"queue {rule.queue} has a rule {rule.rule} already")
        return await self._put(table, rule)

    async def enable(self, who: Identity, queue: str, rule: str, *, enabled: bool) -> RouteRule:
        """Have a rule take events again, or none.

        Raises:
            NotFound: There is no such rule.
            Refused: Enabled, it would tie with another rule.
        """
        require_operator(who, "routes")
        table = await self._cache.table()
        found = self._of(table, queue, rule)
        changes = {"enabled": enabled, "by": who.subject, "changed_at": datetime.now(UTC)}
        return await self._put(table, found.model_copy(update=changes), found)

    async def change(
        self,
        who: Identity,
        queue: str,
        rule: str,
        fields: Mapping[str, Any],
        versions: Collection[str] | None = None,
    ) -> RouteRule:
        """Replace what a rule matches; a field that is not given gets its default.

        Args:
            who: Who changes it.
            queue: Its queue.
            rule: Its name.
            fields: Of a `RouteRule`.
            versions: Of which the person has seen one; None: whichever it has.

        Raises:
            NotFound: There is no such rule.
            Conflict: Another person has changed it meanwhile.
            InvalidRequest: A field is wrong; the message names all of them.
            Refused: It would tie with another rule.
        """
        require_operator(who, "routes")
        table = await self._cache.table()
        found = self._of(table, queue, rule)
        require_version(found, versions)
        ours = {"queue": queue, "rule": rule, "by": who.subject, "changed_at": datetime.now(UTC)}
        return await self._put(table, _rule({**fields, **ours}), found)

    async def remove(
        self, who: Identity, queue: str, rule: str, versions: Collection[str] | None = None
    ) -> None:
        """Remove a rule; what it was stays in the trail.

        Raises:
            NotFound: There is no such rule.
            Conflict: It is of another version than those that the person has seen.
        """
        require_operator(who, "routes")
        if versions is not None:
            require_version(self._of(await self._cache.table(), queue, rule), versions)
        self._cache.forget()
        if not await self._store.remove(queue, rule, who.subject):
            raise NotFound(f"queue {queue} has no rule {rule}")

    async def test(self, who: Identity, key: RouteKey) -> RouteVerdict:
        """Which rule takes an event, and why the nearest others do not."""
        require_operator(who, "routes")
        table = await self._cache.table()
        return await asyncio.to_thread(table.explain, key)

    async def trail(self, who: Identity, limit: int = 50) -> Sequence[tuple[RouteRule, str]]:
        """Changes, the newest first: `added`, `changed` or `removed`."""
        require_operator(who, "routes")
        return await self._store.trail(limit)

    async def unmatched(self, who: Identity) -> UnmatchedEvents:
        """Events that no rule matched and that no person has assigned."""
        require_operator(who, "routes")
        status = TransferStatus.NO_ASSIGNED
        rows = await self._transfers.newest(limit=_UNMATCHED, visible=who.sees, status=status)
        total = len(rows) if len(rows) < _UNMATCHED else await self._transfers.count(status)
        return UnmatchedEvents(rows, total)

    @staticmethod
    def _of(table: RouteTable, queue: str, rule: str) -> RouteRule:
        found = _find(table, queue, rule)
        if found is None:
            raise NotFound(f"queue {printable(queue)} has no rule {printable(rule)}")
        return found

    async def _put(
        self, table: RouteTable, rule: RouteRule, before: RouteRule | None = None
    ) -> RouteRule:
        if ties := table.ties(rule):
            names = " and ".join(f"{each.queue}/{each.rule}" for each in ties[:3])
            raise Refused(
                f"some events would be taken by this rule as well as by {names}, with nothing to "
                "say which of them wins: make one of them more specific, or give it another "
                f"priority than {rule.priority}"
            )
        try:
            await self._store.put(rule, expected=before)
        except RuleViolation as error:
            raise Conflict(str(error)) from error
        finally:
            self._cache.forget()
        return rule

    def _check_queue(self, queue: str) -> None:
        if queue in self._queues:
            return
        near = get_close_matches(queue, self._queues, n=1)
        hint = f"; did you mean {near[0]}?" if near else f"; there are {', '.join(self._queues)}"
        raise Refused(f"there is no queue {queue}{hint}")


def read_key(event: bytes) -> RouteKey:
    """What an event is routed by, from its JSON.

    Raises:
        InvalidRequest: It is not an event; the message names what is missing.
    """
    if len(event) > EVENT_BYTES:
        raise InvalidRequest(f"the event is over {EVENT_BYTES // 1024} KiB")
    try:
        found = json.loads(event)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the event is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidRequest("the event is not a JSON object")
    fields = cast(Mapping[str, Any], found)
    data = fields.get("data")
    account = cast(Mapping[str, Any], data).get("accountId") if isinstance(data, dict) else None
    values = {"account_id": account, **{name: fields.get(name) for name in _AT_THE_TOP}}
    try:
        return RouteKey.model_validate(values)
    except ValidationError as error:
        wrong = ", ".join(_IN_EVENTS[str(each["loc"][0])] for each in error.errors())
        raise InvalidRequest(
            f"the event lacks {wrong}, or has something else than a text of 1 to 500 characters "
            "there"
        ) from error


def _holds(rule: RouteRule, wanted: str) -> bool:
    texts = (rule.queue, rule.rule, rule.account_id, rule.source, rule.type, rule.subject)
    return not wanted or any(wanted in each.casefold() for each in texts)


def _find(table: RouteTable, queue: str, rule: str) -> RouteRule | None:
    return next((each for each in table.rules if (each.queue, each.rule) == (queue, rule)), None)


def _next_name(table: RouteTable, queue: str) -> str:
    taken = {each.rule for each in table.rules if each.queue == queue}
    number = len(taken) + 1
    while str(number) in taken:
        number += 1
    return str(number)


def _rule(fields: Mapping[str, Any]) -> RouteRule:
    try:
        return RouteRule.model_validate(fields)
    except ValidationError as error:
        problems = (
            f"{LABELS.get(str(each['loc'][0]), each['loc'][0])}: {problem_text(each)}"
            for each in error.errors()
        )
        raise InvalidRequest("; ".join(problems)) from error


def main() -> None:
    """Write the schema to standard output."""
    sys.stdout.write(json.dumps(schema(), indent=2) + "\n")


if __name__ == "__main__":
    main()
