"""The search attributes of docflow: whether a namespace has them, and how they are made."""

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.workflowservice.v1 import CountWorkflowExecutionsRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeIndexedValueType, SearchAttributeKey
from temporalio.service import RPCError, RPCStatusCode

from workers.shared.services.errors import TemporalUnavailable
from workflows.shared import attributes

RPC_TIMEOUT: Final = timedelta(seconds=5)
_VALUES: Final[Mapping[SearchAttributeIndexedValueType, str]] = {
    SearchAttributeIndexedValueType.KEYWORD: "'none'",
    SearchAttributeIndexedValueType.BOOL: "true",
    SearchAttributeIndexedValueType.DATETIME: "'2000-01-01T00:00:00Z'",
}
"""A value of each type that docflow uses, as a query has it."""
_TYPES: Final[Mapping[SearchAttributeIndexedValueType, str]] = {
    SearchAttributeIndexedValueType.KEYWORD: "Keyword",
    SearchAttributeIndexedValueType.BOOL: "Bool",
    SearchAttributeIndexedValueType.DATETIME: "Datetime",
}
_UNANSWERED: Final = frozenset(
    {
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNIMPLEMENTED,
    }
)
"""The operator API is not for everyone."""
_POLL_SECONDS: Final = 0.5
_REFUSAL: Final = re.compile(
    r"no mapping defined for search attribute|search attribute \S+ is not defined"
    r"|invalid search attribute|invalid value for search attribute",
    re.IGNORECASE,
)
"""What Temporal says where the namespace lacks one of our search attributes, or has another."""


class NotMade(Exception):
    """Temporal refuses to make search attributes; the message says why."""


def is_refusal(error: RPCError) -> bool:
    """Whether Temporal refused something because the namespace lacks a search attribute."""
    return bool(_REFUSAL.search(error.message))


def types() -> Mapping[str, str]:
    """Name to type of each, as the Temporal CLI spells them."""
    return {key.name: _TYPES[key.indexed_value_type] for key in attributes.ALL}


async def require_answer(client: Client) -> None:
    """See at little cost whether Temporal answers.

    Raises:
        TemporalUnavailable: It does not.
    """
    try:
        await client.service_client.check_health(timeout=RPC_TIMEOUT)
    except (RPCError, RuntimeError) as error:
        raise _unavailable(error) from error


async def usable(client: Client) -> bool:
    """Whether a query may name all of them, as starts do.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    return await _known(client, _query(attributes.ALL))


async def missing(client: Client) -> Sequence[str]:
    """The names that the namespace does not have.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    if await usable(client):
        return ()
    return [key.name for key in attributes.ALL if not await _known(client, _query((key,)))]


async def of_another_type(client: Client) -> Mapping[str, str]:
    """Those that exist with another type: name to that type; none where we may not ask.

    Raises:
        TemporalUnavailable: Temporal does not answer.
    """
    request = ListSearchAttributesRequest(namespace=client.namespace)
    try:
        found = await client.operator_service.list_search_attributes(request, timeout=RPC_TIMEOUT)
    except (RPCError, RuntimeError) as error:
        if isinstance(error, RPCError) and error.status in _UNANSWERED:
            return {}
        raise _unavailable(error) from error
    return {
        key.name: _spelt(found.custom_attributes[key.name])
        for key in attributes.ALL
        if found.custom_attributes.get(key.name, key.indexed_value_type) != key.indexed_value_type
    }


async def make(client: Client, names: Sequence[str], *, seconds: float = 30) -> None:
    """Make search attributes of docflow, and wait until they are known everywhere.

    Args:
        client: Of the namespace.
        names: Those to make.
        seconds: How long to wait; frontends of Temporal read a namespace anew every few seconds.

    Raises:
        NotMade: Temporal refuses.
        TemporalUnavailable: Temporal does not answer.
    """
    wanted = {
        key.name: IndexedValueType.ValueType(key.indexed_value_type)
        for key in attributes.ALL
        if key.name in names
    }
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=wanted)
    try:
        await client.operator_service.add_search_attributes(request, timeout=RPC_TIMEOUT * 3)
    except RPCError as error:
        if error.status in (*_UNANSWERED, RPCStatusCode.INVALID_ARGUMENT):
            raise NotMade(error.message) from error
        raise _unavailable(error) from error
    # When the time is over they are made all the same: a process that is not ready looks again.
    for _ in range(math.ceil(seconds / _POLL_SECONDS)):
        if await usable(client):
            return
        await asyncio.sleep(_POLL_SECONDS)


def _query(keys: Sequence[SearchAttributeKey[Any]]) -> str:
    return " AND ".join(f"{key.name} = {_VALUES[key.indexed_value_type]}" for key in keys)


async def _known(client: Client, query: str) -> bool:
    request = CountWorkflowExecutionsRequest(namespace=client.namespace, query=query)
    try:
        await client.workflow_service.count_workflow_executions(request, timeout=RPC_TIMEOUT)
    # A client that was never connected raises a RuntimeError.
    except (RPCError, RuntimeError) as error:
        match getattr(error, "status", None):
            case RPCStatusCode.INVALID_ARGUMENT:
                return False
            case RPCStatusCode.RESOURCE_EXHAUSTED:
                # It answers; that it has no time for queries is no reason to stop everything else.
                return True
            case _:
                raise _unavailable(error) from error
    return True


def _spelt(value: IndexedValueType.ValueType) -> str:
    words = IndexedValueType.Name(value).removeprefix("INDEXED_VALUE_TYPE_").split("_")
    return "".join(word.capitalize() for word in words)


def _unavailable(error: RPCError | RuntimeError) -> TemporalUnavailable:
    return TemporalUnavailable(f"Temporal does not answer: {error}")
