"""What people are shown about one document, by commands and pages alike."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapters.ports import DocumentView


def remark(document: "DocumentView") -> str:
    """Why it failed or whose bytes it has, what is not read of it, and where it was found."""
    event = f"{document.failed_event}: " if document.failed_event else ""
    parts = (
        document.duplicate_of and f"the same bytes as {document.duplicate_of}",
        document.reason and f"{event}{document.reason}",
        document.notes,
        document.parent_id and f"found in {document.parent_id}",
    )
    return "; ".join(part for part in parts if part)
