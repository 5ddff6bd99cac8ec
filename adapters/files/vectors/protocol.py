"""What crosses the pipe to the process that reads vector data."""

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from contracts.jobs.vectors import SourceReport, VectorOptions


class VectorFormat(StrEnum):
    """Formats by what a file begins with; the value is the suffix it is read under."""

    SHAPEFILE = "zip"
    GEOPACKAGE = "gpkg"
    GEOJSON = "geojson"
    KML = "kml"


class VectorOrder(BaseModel):
    """One file to be read."""

    model_config = ConfigDict(frozen=True)

    path: Path
    format: VectorFormat
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
