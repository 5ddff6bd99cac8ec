"""What people are shown about one document, by commands and pages alike."""

from typing import TYPE_CHECKING, Final

from contracts.batches import DocumentState

if TYPE_CHECKING:
    from adapters.ports import DocumentView

_READ: Final = (DocumentState.LOADED, DocumentState.DUPLICATE, DocumentState.LOADING)
"""The words of a document in one of these are in the case, or soon will be."""


def remark(document: "DocumentView") -> str:
    """Why it failed or whose bytes it has, what is not read of it, and where it was found."""
    event = f"{document.failed_event}: " if document.failed_event else ""
    parts = (
        _original(document),
        document.reason and f"{event}{document.reason}",
        document.notes,
        document.parent_id and f"found in {document.parent_id}",
    )
    return "; ".join(part for part in parts if part)


def _original(document: "DocumentView") -> str | None:
    """Whose bytes it has; where those are not loaded, no words of either are."""
    if document.duplicate_of is None:
        return None
    same, state = f"the same bytes as {document.duplicate_of}", document.original_state
    if document.state is not DocumentState.DUPLICATE or state in (None, *_READ):
        return same
    return f"{same}, which is {state}: neither is read until that one is loaded"
