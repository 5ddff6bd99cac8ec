"""`jobconfig` in Azure Tables, as the system that docflow replaces keeps it.

`PartitionKey` is the queue, `RowKey` the rule; `EventType`, `EventSource`, `EventSubject` and
`EventAccountID` are what it matches. docflow adds `Priority`, `Enabled`, `ChangedBy` and
`ChangedAt`, each with a default, so that both systems can use one table.
"""

import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final

from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
    ServiceRequestError,
    ServiceResponseError,
)
from azure.data.tables import UpdateMode
from azure.data.tables.aio import TableClient
from pydantic import ValidationError

from adapters.ports.errors import Denied, Throttled, Unavailable
from workflows.shared.contracts import problem_text
from workflows.shared.dependencies import Dependency
from workflows.transfers.routes import RouteRemark, RouteRule, require_unchanged

_PROPERTIES: Final = {
    "account_id": "EventAccountID",
    "source": "EventSource",
    "type": "EventType",
    "subject": "EventSubject",
}
_TRAIL: Final = "trail"
_END: Final = datetime.max.replace(tzinfo=UTC)
_UNAUTHORISED: Final = frozenset({401, 403})
_THROTTLED: Final = frozenset({429, 503})


class AzureRouteTable:
    """Rules in a table of a storage account; changes in another, named `<table>trail`.

    Rules that other programs change are seen as well; only docflow's changes stand in the trail.
    Each call connects anew: rules are asked for every few seconds at most.

    Args:
        connection_string: Of a storage account.
        table: Name of the table; both exist, see `create`.
        options: Of the client, as its retries.
    """

    def __init__(self, connection_string: str, table: str, **options: Any) -> None:
        self.name = table
        self._connection_string = connection_string
        self._options = options

    async def create(self) -> None:
        """Create both tables unless they exist."""
        for name in (self.name, self.name + _TRAIL):
            async with self._open(name) as table:
                with suppress(ResourceExistsError):
                    await table.create_table()

    async def version(self) -> str:
        """Hash over the keys and etags of all rows: any program's change changes it."""
        digest = hashlib.sha256()
        async with self._open(self.name) as table:
            async for row in table.list_entities(select=["PartitionKey", "RowKey"]):
                digest.update(f"{row['PartitionKey']}\0{row['RowKey']}\0".encode())
                digest.update(str(row.metadata.get("etag")).encode())
        return digest.hexdigest()

    async def rules(self) -> Sequence[RouteRule]:
        """Every row of which a rule can be made."""
        return (await self._read())[0]

    async def unusable(self) -> Sequence[RouteRemark]:
        """Every other row, with the reason: it never takes an event."""
        return (await self._read())[1]

    async def put(self, rule: RouteRule, *, expected: RouteRule | None = None) -> None:
        """Insert or replace a rule; what other programs keep in further properties stays.

        Raises:
            RuleViolation: It is not as expected any more.
        """
        async with self._open(self.name) as table:
            before = await _get(table, rule.queue, rule.rule)
            if expected is None:
                await table.upsert_entity(_entity(rule), mode=UpdateMode.MERGE)
            else:
                require_unchanged(None if before is None else _rule(before), expected)
                await _replace(table, rule, before)
        await self._note(rule, "added" if before is None else "changed")

    async def remove(self, queue: str, rule: str, by: str | None) -> bool:
        """Remove a rule; False: there is none."""
        async with self._open(self.name) as table:
            before = await _get(table, queue, rule)
            if before is None:
                return False
            await table.delete_entity(queue, rule)
        removed = _rule(before)
        if isinstance(removed, RouteRule):
            now = datetime.now(UTC)
            await self._note(removed.model_copy(update={"by": by, "changed_at": now}), "removed")
        return True

    async def trail(self, limit: int = 200) -> Sequence[tuple[RouteRule, str]]:
        """Changes that docflow made, the newest first."""
        found: list[tuple[RouteRule, str]] = []
        async with self._open(self.name + _TRAIL) as table:
            async for row in table.list_entities(results_per_page=min(limit, 1_000)):
                found.append(_change(row))
                if len(found) == limit:
                    break
        return found

    async def _read(self) -> tuple[Sequence[RouteRule], Sequence[RouteRemark]]:
        rules: list[RouteRule] = []
        unusable: list[RouteRemark] = []
        async with self._open(self.name) as table:
            async for row in table.list_entities():
                found = _rule(row)
                if isinstance(found, RouteRule):
                    rules.append(found)
                else:
                    unusable.append(found)
        return rules, unusable

    async def _note(self, rule: RouteRule, change: str) -> None:
        at = rule.changed_at or datetime.now(UTC)
        # Rows are listed by key: what is left until the end of time puts the newest first.
        left = int((_END - at).total_seconds() * 1_000_000)
        row = {
            "PartitionKey": _TRAIL,
            "RowKey": f"{left:020}-{rule.queue}-{rule.rule}",
            "Change": change,
            "Rule": rule.model_dump_json(),
        }
        async with self._open(self.name + _TRAIL) as table:
            await table.upsert_entity(row)

    @asynccontextmanager
    async def _open(self, name: str) -> AsyncGenerator[TableClient]:
        """Connect to a table; its errors are those of ports."""
        client = TableClient.from_connection_string(
            self._connection_string, table_name=name, **self._options
        )
        async with _errors(), client:
            yield client


async def _replace(table: TableClient, rule: RouteRule, before: Any) -> None:
    """Replace a row that is as it was read.

    Raises:
        RuleViolation: It was changed in between.
    """
    try:
        await table.update_entity(
            _entity(rule),
            mode=UpdateMode.MERGE,
            etag=before.metadata["etag"],
            match_condition=MatchConditions.IfNotModified,
        )
    except ResourceModifiedError:
        require_unchanged(None, rule)


def _entity(rule: RouteRule) -> Mapping[str, Any]:
    return {
        "PartitionKey": rule.queue,
        "RowKey": rule.rule,
        **{name: getattr(rule, field) for field, name in _PROPERTIES.items()},
        "Priority": rule.priority,
        "Enabled": rule.enabled,
        "ChangedBy": rule.by or "",
        "ChangedAt": rule.changed_at or datetime.now(UTC),
    }


def _rule(row: Mapping[str, Any]) -> RouteRule | RouteRemark:
    """The rule of a row, or why there is none."""
    queue, name = str(row["PartitionKey"]), str(row["RowKey"])
    missing = [each for each in _PROPERTIES.values() if row.get(each) in (None, "")]
    if missing:
        return _remark(queue, name, f"{' and '.join(missing)} missing or blank")
    try:
        return RouteRule(
            queue=queue,
            rule=name,
            **{field: row[each] for field, each in _PROPERTIES.items()},
            priority=row.get("Priority", 0),
            enabled=row.get("Enabled", True),
            by=row.get("ChangedBy") or None,
            changed_at=row.get("ChangedAt"),
        )
    except ValidationError as error:
        problems = (f"{each['loc'][0]}: {problem_text(each)}" for each in error.errors())
        return _remark(queue, name, "; ".join(problems))


def _change(row: Mapping[str, Any]) -> tuple[RouteRule, str]:
    return RouteRule.model_validate_json(row["Rule"]), row["Change"]


def _remark(queue: str, rule: str, reason: str) -> RouteRemark:
    # Keys of foreign rows may be longer than ours: they are shown, not used.
    return RouteRemark.model_construct(queue=queue[:200], rule=rule[:200], reason=reason[:500])


async def _get(table: TableClient, queue: str, rule: str) -> Mapping[str, Any] | None:
    try:
        return await table.get_entity(queue, rule)
    except ResourceNotFoundError as error:
        if error.error_code == "TableNotFound":  # pyright: ignore[reportAttributeAccessIssue]
            raise
        return None


@asynccontextmanager
async def _errors() -> AsyncGenerator[None]:
    """Errors of the service as those of ports, without addresses or signatures."""
    try:
        yield
    except (ServiceRequestError, ServiceResponseError) as error:
        raise Unavailable(
            f"Azure Tables does not answer ({type(error).__name__})", Dependency.DATABASE
        ) from error
    except ResourceNotFoundError as error:
        raise Unavailable(
            "the table of routes does not exist: `docflow setup` creates it",
            Dependency.DATABASE,
            misconfigured=True,
        ) from error
    except HttpResponseError as error:
        if error.status_code in _UNAUTHORISED:
            raise Unavailable(
                f"Azure Tables refuses our credentials ({error.status_code})",
                Dependency.DATABASE,
                misconfigured=True,
            ) from error
        if error.status_code in _THROTTLED:
            raise Throttled(
                f"Azure Tables asks for fewer requests ({error.status_code})"
            ) from error
        if error.status_code is not None and error.status_code >= 500:
            raise Unavailable(
                f"Azure Tables answers {error.status_code}", Dependency.DATABASE
            ) from error
        raise Denied(f"Azure Tables refuses the request ({error.status_code})") from error
