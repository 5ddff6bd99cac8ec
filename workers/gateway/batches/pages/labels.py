"""What the pages call states, and why things are as they are."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from contracts.batches import DocumentState, LoaderStatus, ResourceState, WaitingBatch


@dataclass(frozen=True, slots=True)
class Label:
    """A state, for people."""

    text: str
    tone: str = ""


BATCHES: Final[Mapping[LoaderStatus, Label]] = {
    LoaderStatus.WAITING: Label("Waits"),
    LoaderStatus.PROCESSING: Label("Loading", "info"),
    LoaderStatus.COMPLETE: Label("Complete", "good"),
    LoaderStatus.INCOMPLETE: Label("Incomplete", "bad"),
    LoaderStatus.CANCELLED: Label("Cancelled"),
    LoaderStatus.FAILED: Label("Failed", "bad"),
    LoaderStatus.SKIPPED: Label("Passed over"),
    LoaderStatus.TERMINATED: Label("Terminated", "bad"),
}
DOCUMENTS: Final[Mapping[DocumentState, Label]] = {
    DocumentState.LOADING: Label("Loading", "info"),
    DocumentState.LOADED: Label("Loaded", "good"),
    DocumentState.DUPLICATE: Label("Duplicate"),
    DocumentState.SUPERSEDED: Label("Superseded"),
    DocumentState.FAILED: Label("Failed", "bad"),
    DocumentState.TERMINATED: Label("Terminated", "bad"),
    DocumentState.CANCELLED: Label("Cancelled", "warn"),
}
RESOURCES: Final[Mapping[ResourceState, Label]] = {
    ResourceState.CREATING: Label("Being made", "info"),
    ResourceState.READY: Label("Ready", "good"),
    ResourceState.DELETING: Label("Being removed", "info"),
    ResourceState.GONE: Label("Removed"),
    ResourceState.KEPT: Label("Kept", "warn"),
    ResourceState.LEFT: Label("Left behind", "bad"),
}


def turn(batch: WaitingBatch) -> str:
    """Where a batch that is not done stands, for those that wait for it."""
    if batch.status is LoaderStatus.PROCESSING:
        return "is loading"
    if batch.purpose is None:
        return "is not started"
    return "waits for its own turn"
