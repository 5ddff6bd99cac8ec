"""A message that Temporal does not take is given back, and at last set aside."""

import json
from typing import Any, cast

import pytest
from temporalio.service import RPCError, RPCStatusCode

from adapters.memory.rejected import MemoryRejectedMessages
from tests.support.transfers.events import an_event
from workers.services.transfers.intake import DELIVERIES, TransferIntake
from workers.services.verdicts import NOT_ACCEPTED, Abandon, DeadLetter, Verdict

BODY = json.dumps(an_event()).encode()


class Refusing:
    """A client of Temporal that takes no start."""

    namespace = "default"

    def __init__(self, status: RPCStatusCode) -> None:
        self._status = status

    async def start_workflow(self, *_: Any, **__: Any) -> None:
        raise RPCError("not this one", self._status, b"")


async def verdicts(status: RPCStatusCode, rejected: MemoryRejectedMessages) -> list[Verdict]:
    """Of each delivery of one message."""
    intake = TransferIntake(cast(Any, Refusing(status)), rejected, way_in="jobs")
    return [await intake.accept(BODY, number, "m1") for number in range(DELIVERIES)]


@pytest.mark.parametrize("status", [RPCStatusCode.INTERNAL, RPCStatusCode.INVALID_ARGUMENT])
async def test_what_temporal_refuses_at_five_deliveries_is_recorded_and_set_aside(
    status: RPCStatusCode,
) -> None:
    rejected = MemoryRejectedMessages()
    *before, last = await verdicts(status, rejected)
    assert len(before) == 4
    assert all(isinstance(each, Abandon) for each in before)
    assert isinstance(last, DeadLetter)
    assert last.reason == NOT_ACCEPTED
    (kept,) = await rejected.list()
    assert (kept.reason, kept.body.encode()) == (NOT_ACCEPTED, BODY)
    assert status.name in kept.description


@pytest.mark.parametrize(
    "status",
    [
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.PERMISSION_DENIED,
    ],
)
async def test_an_outage_of_temporal_sets_no_message_aside(status: RPCStatusCode) -> None:
    rejected = MemoryRejectedMessages()
    assert all(isinstance(each, Abandon) for each in await verdicts(status, rejected))
    assert list(await rejected.list()) == []
