"""What the intakes of all pipelines share."""

import pytest
from temporalio.service import RPCError, RPCStatusCode

from workers.shared.services.intake import LOUD_FROM_DELIVERY, given_back, warn_of_deliveries


@pytest.mark.parametrize(
    ("earlier", "lines"), [(0, 0), (LOUD_FROM_DELIVERY - 2, 0), (LOUD_FROM_DELIVERY - 1, 1)]
)
def test_a_message_that_the_queue_will_give_up_is_named(
    earlier: int, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_deliveries("import-queue", "m-1", earlier)
    assert len(caplog.records) == lines
    assert all(each.levelname == "ERROR" and "'m-1'" in each.message for each in caplog.records)


@pytest.mark.parametrize(
    ("status", "passes"),
    [
        (RPCStatusCode.UNAVAILABLE, True),
        (RPCStatusCode.DEADLINE_EXCEEDED, True),
        (RPCStatusCode.PERMISSION_DENIED, True),
        (RPCStatusCode.INTERNAL, False),
        (RPCStatusCode.INVALID_ARGUMENT, False),
    ],
)
def test_an_outage_of_temporal_is_no_fault_of_the_message(
    status: RPCStatusCode, passes: bool
) -> None:
    assert given_back(RPCError("down", status, b"")).passes is passes
