"""What pages and commands call states, how a batch ended, and what is remarked of a document."""

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Final

from workers.shared.text import N_, Label
from workflows.batches.loads import DocumentState
from workflows.batches.names import LoaderStatus, Phase, Resource, ResourceState
from workflows.batches.runs import BatchStatus, WaitingBatch, outcome_of

if TYPE_CHECKING:
    from activities.batches.records import BatchView, DocumentView

BATCHES: Final[Mapping[LoaderStatus, Label]] = {
    LoaderStatus.WAITING: Label(N_("Waits")),
    LoaderStatus.PROCESSING: Label(N_("Loading"), "info"),
    LoaderStatus.COMPLETE: Label(N_("Complete"), "good"),
    LoaderStatus.INCOMPLETE: Label(N_("Incomplete"), "bad"),
    LoaderStatus.CANCELLED: Label(N_("Cancelled")),
    LoaderStatus.FAILED: Label(N_("Failed"), "bad"),
    LoaderStatus.SKIPPED: Label(N_("Passed over")),
    LoaderStatus.TERMINATED: Label(N_("Terminated"), "bad"),
}
DOCUMENTS: Final[Mapping[DocumentState, Label]] = {
    DocumentState.LOADING: Label(N_("Loading"), "info"),
    DocumentState.LOADED: Label(N_("Loaded"), "good"),
    DocumentState.DUPLICATE: Label(N_("Duplicate")),
    DocumentState.SUPERSEDED: Label(N_("Superseded")),
    DocumentState.FAILED: Label(N_("Failed"), "bad"),
    DocumentState.TERMINATED: Label(N_("Terminated"), "bad"),
    DocumentState.CANCELLED: Label(N_("Cancelled"), "warn"),
}
RESOURCES: Final[Mapping[ResourceState, Label]] = {
    ResourceState.CREATING: Label(N_("Being made"), "info"),
    ResourceState.READY: Label(N_("Ready"), "good"),
    ResourceState.DELETING: Label(N_("Being removed"), "info"),
    ResourceState.GONE: Label(N_("Removed")),
    ResourceState.KEPT: Label(N_("Kept"), "warn"),
    ResourceState.LEFT: Label(N_("Left behind"), "bad"),
}


PHASES: Final[Mapping[Phase, str]] = {
    Phase.VALIDATING: N_("checking whether it may begin"),
    Phase.BLOCKED: N_("waiting for another batch"),
    Phase.PROVISIONING: N_("making its resources"),
    Phase.LOADING: N_("loading documents"),
    Phase.DRAINING: N_("emptying its queues"),
    Phase.REDRIVING: N_("trying dead letters again"),
    Phase.ENDING: N_("ending"),
    Phase.TEARING_DOWN: N_("removing its resources"),
    Phase.PARKED: N_("waiting for a person"),
    Phase.DONE: N_("done"),
}
PARTS: Final[Mapping[Resource, str]] = {
    Resource.QUEUE: N_("queue"),
    Resource.DEAD_LETTERS: N_("dead-letter queue"),
    Resource.REDRIVE_POLICY: N_("redrive policy"),
    Resource.QUEUE_POLICY: N_("queue policy"),
    Resource.SUBSCRIPTION: N_("subscription"),
    Resource.PERMISSIONS: N_("permissions"),
    Resource.FUNCTION: N_("function"),
    Resource.DELIVERY: N_("proof of delivery"),
    Resource.MAPPING: N_("event source mapping"),
    Resource.CONCURRENCY: N_("reserved concurrency"),
}


def turn(batch: WaitingBatch) -> str:
    """Where a batch that is not done stands, for those that wait for it."""
    if batch.status is LoaderStatus.PROCESSING:
        return N_("is loading")
    if batch.purpose is None:
        return N_("is not started")
    return N_("waits for its own turn")


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


def shown_outcome(view: "BatchView", run: BatchStatus | None) -> str | None:
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


_READ: Final = (DocumentState.LOADED, DocumentState.DUPLICATE, DocumentState.LOADING)
"""The words of a document in one of these are in the case, or soon will be."""


def remark(document: "DocumentView | SimpleNamespace") -> str:
    """Why it failed or whose bytes it has, what is not read of it, and where it was found.

    Args:
        document: As it is served, or what was read of that.
    """
    event = f"{document.failed_event}: " if document.failed_event else ""
    parts = (
        _original(document),
        document.reason and f"{event}{document.reason}",
        document.notes,
        document.parent_id and f"found in {document.parent_id}",
    )
    return "; ".join(part for part in parts if part)


def _original(document: "DocumentView | SimpleNamespace") -> str | None:
    """Whose bytes it has; where those are not loaded, no words of either are."""
    if document.duplicate_of is None:
        return None
    same, state = f"the same bytes as {document.duplicate_of}", document.original_state
    if document.state is not DocumentState.DUPLICATE or state in (None, *_READ):
        return same
    return f"{same}, which is {state}: neither is read until that one is loaded"
