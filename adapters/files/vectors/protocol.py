"""What crosses the pipe to the process that reads vector data."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from workflows.jobs.vectors import SourceReport, VectorOptions


class VectorRequest(BaseModel):
    """One file to be read."""

    model_config = ConfigDict(frozen=True)

    path: Path
    folder: Path
    """Takes, for each layer of the report by number from 0, `{n}.parquet` and `{n}.jsonl`."""
    options: VectorOptions


class VectorAnswer(BaseModel):
    """What became of it; exactly one of the four."""

    model_config = ConfigDict(frozen=True)

    report: SourceReport | None = None
    refused: str | None = None
    question: str | None = None
    unexpected: str | None = None
    """An exception that the reader does not know."""
    parameter: str | None = None
    """Of the question."""
