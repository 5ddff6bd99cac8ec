"""What goes to a reading process, and what comes back."""

from pathlib import Path
from typing import Final

from pydantic import BaseModel

from adapters.files.forks import Bounds
from adapters.ports import Extracted

NICENESS: Final = 5
"""By so much a process that reads documents gives way to the worker and other programs of its
machine: what starts new cases is short, and does not wait for documents of others."""


class ReadOrder(BaseModel):
    """One document to read."""

    path: Path
    filename: str | None
    folder: Path
    bounds: Bounds


class Answer(BaseModel):
    """Its outcome: what was found, or why nothing was."""

    extracted: Extracted | None = None
    needs_library: bool = False
    """It has to be read by a process that has the library for Office files."""
    unreadable: str | None = None
