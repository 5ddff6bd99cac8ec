"""What the intakes of all pipelines share."""

import pytest

from workers.services.intake import LOUD_FROM_DELIVERY, warn_of_deliveries


@pytest.mark.parametrize(
    ("earlier", "lines"), [(0, 0), (LOUD_FROM_DELIVERY - 2, 0), (LOUD_FROM_DELIVERY - 1, 1)]
)
def test_a_message_that_the_queue_will_give_up_is_named(
    earlier: int, lines: int, caplog: pytest.LogCaptureFixture
) -> None:
    warn_of_deliveries("import-queue", "m-1", earlier)
    assert len(caplog.records) == lines
    assert all(each.levelname == "ERROR" and "'m-1'" in each.message for each in caplog.records)
