"""How a batch ended, as people are shown it."""

from types import MappingProxyType
from typing import Final

from adapters.ports import BatchView
from contracts.batches import BatchStatus, LoaderStatus, outcome_of

_S = LoaderStatus

_STANDS: Final = MappingProxyType(
    {
        _S.WAITING: "waits to be started, or for its turn",
        _S.PROCESSING: "is being loaded",
        _S.COMPLETE: "is complete",
        _S.CANCELLED: "was cancelled",
        _S.FAILED: "has failed",
        _S.SKIPPED: "was left alone",
        _S.TERMINATED: "was terminated before its end",
        _S.INCOMPLETE: "was given up before its end, when its run was gone",
    }
)


def standing(status: LoaderStatus) -> str:
    """Where a batch stands, as a part of a sentence: `is complete`, `has failed`."""
    return _STANDS[status]


def shown_outcome(view: BatchView, run: BatchStatus | None) -> str | None:
    """How a batch ended, as LOADER_FINISHED says; None: it has not.

    Args:
        view: Its row.
        run: What its newest run reports. Releases before kept there alone that a queue was deleted
            with what it held.
    """
    if not view.status.terminal:
        return None
    lost = view.lost is not None or (run is not None and run.outcome == "PARTIAL")
    return outcome_of(view.status, view.documents, max(view.dead_letters, int(lost)))
