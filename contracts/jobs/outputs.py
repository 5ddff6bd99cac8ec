"""What a job has made, as its result names it for people: `result_data["outputs"]`."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from contracts.base import Contract
from contracts.jobs.records import JsonObject

OUTPUTS: Final = "outputs"
"""Key in the result of a job."""
FILES: Final = 500
"""That a page lists."""
NOTES: Final = 40
"""The same."""
NOTE_CHARACTERS: Final = 250

Uri = Annotated[str, Field(pattern=r"^(bronze|silver|gold)://.+", max_length=2_048)]
"""Tier, and name of a blob in its container: `silver://name`."""

OutputNote = Annotated[str, Field(max_length=NOTE_CHARACTERS)]


class OutputFile(Contract):
    """A file to download."""

    uri: Uri
    title: str = Field(max_length=200)
    media_type: str = Field(default="application/octet-stream", max_length=100)
    size: int | None = None
    """Bytes."""


class JobOutputs(Contract):
    """Preview, footprint, files, and what people should know of them."""

    preview: Uri | None = None
    """A PNG."""
    footprint: JsonObject | None = None
    """A GeoJSON geometry in degrees."""
    files: tuple[OutputFile, ...] = Field(default=(), max_length=FILES)
    notes: tuple[OutputNote, ...] = Field(default=(), max_length=NOTES)
    """What was left out or done to the data."""

    @classmethod
    def shown(cls, notes: Sequence[str]) -> tuple[str, ...]:
        """The first of some notes, within their bounds; the last one says how many are left out."""
        found = [_cut(each) for each in notes]
        if len(found) > NOTES:
            found[NOTES - 1 :] = [f"and {len(found) - NOTES + 1:,} more"]
        return tuple(found)

    @classmethod
    def of(cls, result: dict[str, Any]) -> "JobOutputs":
        """Those that a result names; none where it names none that can be shown."""
        try:
            return cls.model_validate(result.get(OUTPUTS, {}))
        except ValidationError:
            return cls()


def _cut(note: str) -> str:
    return note if len(note) <= NOTE_CHARACTERS else f"{note[: NOTE_CHARACTERS - 1]}…"
