"""What a test sees of a file that was read."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shapely
from arro3.io import read_parquet

from workflows.jobs.vectors import ColumnType, LayerReport, SourceReport


@dataclass
class Read:
    """A report, and the features that were kept."""

    report: SourceReport
    folder: Path

    @property
    def layer(self) -> LayerReport:
        """The only one."""
        (layer,) = self.report.layers
        return layer

    @property
    def names(self) -> list[str]:
        """Columns."""
        return [column.name for column in self.layer.table.columns]

    @property
    def types(self) -> dict[str, ColumnType]:
        """Column to type."""
        return {column.name: column.type for column in self.layer.table.columns}

    def rows(self, number: int = 0) -> list[tuple[Any, ...]]:
        """Features, with geometries as text."""
        found: list[tuple[Any, ...]] = []
        for batch in read_parquet(self.folder / f"{number}.parquet"):
            *columns, wkb = [batch[name].to_pylist() for name in batch.schema.names]
            texts = [None if g is None else shapely.from_wkb(g).wkt for g in wkb]
            found += zip(*columns, texts, strict=True)
        return found

    def noted(self, *words: str) -> bool:
        """Whether a note of the layer has all these words."""
        return any(all(word in note for word in words) for note in self.layer.notes)

    def problems(self) -> list[str]:
        """Reasons, with the numbers of their features."""
        lines = (self.folder / "0.jsonl").read_text().splitlines()
        return [f"{each['feature']}: {each['reason']}" for each in map(json.loads, lines)]


Reading = Callable[..., Awaitable[Read]]
"""Reads a file as a job does; options are those of `VectorOptions`."""
