"""What a job has made, as its result names it for people: `result_data["outputs"]`."""

from typing import Annotated, Any, Final

from pydantic import Field, ValidationError

from contracts.base import Contract
from contracts.jobs.records import JsonObject

OUTPUTS: Final = "outputs"
"""Key in the result of a job."""
FILES: Final = 500
"""That a page lists."""

Uri = Annotated[str, Field(pattern=r"^(bronze|silver|gold)://.+", max_length=2_048)]
"""Tier, and name of a blob in its container: `silver://name`."""


class OutputFile(Contract):
    """A file to download."""

    uri: Uri
    title: str = Field(max_length=200)
    media_type: str = Field(default="application/octet-stream", max_length=100)
    size: int | None = None
    """Bytes."""


class JobOutputs(Contract):
    """Preview, footprint and files."""

    preview: Uri | None = None
    """A PNG."""
    footprint: JsonObject | None = None
    """A GeoJSON geometry in degrees."""
    files: tuple[OutputFile, ...] = Field(default=(), max_length=FILES)

    @classmethod
    def of(cls, result: dict[str, Any]) -> "JobOutputs":
        """Those that a result names; none where it names none that can be shown."""
        try:
            return cls.model_validate(result.get(OUTPUTS, {}))
        except ValidationError:
            return cls()
