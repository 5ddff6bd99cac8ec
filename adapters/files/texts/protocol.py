"""What goes to a reading process, and what comes back."""

from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from adapters.files import limits
from adapters.ports import Extracted
from contracts.dependencies import Dependency

ANSWER_BYTES: Final = 3 * limits.TEXT_BYTES
"""The text in JSON, where every line break takes two bytes, and everything else."""
ORDER_BYTES: Final = 64 * 1024


class Bounds(BaseModel):
    """What reading one document may cost."""

    model_config = ConfigDict(frozen=True)

    memory_bytes: int = limits.READER_MEMORY_BYTES
    """Address space."""
    cpu_seconds: int = limits.READER_CPU_SECONDS
    """Processor time; after three quarters of it, reading ends with what it has."""
    seconds: int = limits.READER_SECONDS
    """Wall-clock time."""


class ReadOrder(BaseModel):
    """One document to read."""

    path: Path
    filename: str | None
    folder: Path
    bounds: Bounds


class Answer(BaseModel):
    """Its outcome: what was found, or why nothing was."""

    extracted: Extracted | None = None
    unreadable: str | None = None
    unavailable: str | None = None
    dependency: Dependency | None = None
    """What was unavailable, when docflow itself needs it."""
