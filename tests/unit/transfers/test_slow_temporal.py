"""Events that jobs send on while Temporal is slow."""

import json
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports.errors import NotYet, Unavailable
from tests.support.memory.partners import MemoryPartners
from workers.transfers.starts import StartedEvents

EVENT = json.dumps(
    {
        "specversion": "1.0",
        "id": "1",
        "source": "TMS",
        "type": "Succeeded",
        "subject": "File Upload",
        "data": {"accountId": "TMS001"},
    }
)


class _Refusing:
    """A client of a server that answers every start in one way."""

    namespace = "default"

    def __init__(self, status: RPCStatusCode) -> None:
        self._status = status

    async def start_workflow(self, *_: Any, **__: Any) -> None:
        raise RPCError("it answers so", self._status, b"")


@pytest.mark.parametrize(
    ("status", "failure"),
    [
        (RPCStatusCode.DEADLINE_EXCEEDED, NotYet),
        (RPCStatusCode.UNAVAILABLE, NotYet),
        (RPCStatusCode.RESOURCE_EXHAUSTED, NotYet),
        (RPCStatusCode.CANCELLED, NotYet),
        (RPCStatusCode.INVALID_ARGUMENT, Unavailable),
    ],
)
async def test_a_slow_temporal_uses_up_no_retry(
    status: RPCStatusCode, failure: type[Exception]
) -> None:
    client = cast(Client, _Refusing(status))
    sender = StartedEvents(client, {}, cast(Any, MemoryPartners()))
    with pytest.raises(failure, match="does not take the event: it answers so"):
        await sender.send(EVENT, None)
