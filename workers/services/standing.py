"""How a run stands in Temporal, as a part of a sentence."""

from types import MappingProxyType
from typing import Final

from temporalio.client import WorkflowExecutionStatus

_S = WorkflowExecutionStatus

_STANDS: Final = MappingProxyType(
    {
        _S.RUNNING: "has not ended",
        _S.CONTINUED_AS_NEW: "has not ended",
        _S.COMPLETED: "has ended",
        _S.FAILED: "has failed",
        _S.CANCELED: "was cancelled",
        _S.TERMINATED: "was terminated",
        _S.TIMED_OUT: "has run out of time",
    }
)


def standing(status: WorkflowExecutionStatus) -> str:
    """What follows "the run": `has ended`, `was terminated`."""
    return _STANDS.get(status, "has not ended")
