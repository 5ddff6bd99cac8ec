"""Times of batches on one machine, where counters of queues are exact and people wait."""

from types import MappingProxyType
from typing import Final

BATCH_TIMES: Final = MappingProxyType(
    {
        "DOCFLOW_BATCH_SETTLE_SECONDS": "2",
        "DOCFLOW_BATCH_POLL_SECONDS": "2",
        "DOCFLOW_BATCH_HOLD_SECONDS": "3",
        "DOCFLOW_BATCH_GRACE_SECONDS": "30",
        "DOCFLOW_BATCH_STUCK_AFTER_SECONDS": "300",
        "DOCFLOW_BATCH_END_SECONDS": "300",
    }
)
