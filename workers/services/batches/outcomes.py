"""How a batch ended, as people are shown it."""

from adapters.ports import BatchView
from contracts.batches import BatchStatus, outcome_of


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
