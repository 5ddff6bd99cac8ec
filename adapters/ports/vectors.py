"""Vector data: reading files of other formats, and writing exports."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from contracts.jobs.vectors import SourceReport, VectorOptions, VectorTable


class QuestionOpen(Exception):
    """The file does not say something that a person has to.

    Attributes:
        parameter: Of the job; its name.
    """

    def __init__(self, parameter: str, question: str) -> None:
        super().__init__(question)
        self.parameter = parameter


class Vectors(Protocol):
    """Reads and writes files of vector data."""

    async def read(self, path: Path, folder: Path, options: VectorOptions) -> SourceReport:
        """Read all layers of a file: validated, repaired, in EPSG:4326.

        Args:
            path: The file, in a folder that nothing else is in.
            folder: Takes `{n}.parquet` with the features and `{n}.jsonl` with the problems of
                each layer, by its number in the report.
            options: What the job says about it.

        Raises:
            UnreadableDocument: It is of another format, damaged, hostile or too large.
            QuestionOpen: A person has to say something.
            Unavailable: The process was lost.
        """
        ...

    async def export(
        self, table: VectorTable, rows: AsyncIterator[Sequence[tuple[Any, ...]]], target: Path
    ) -> int:
        """Write a table as GeoParquet 1.1 with a covering of boxes.

        Args:
            table: Whose columns the rows have.
            rows: `fid`, the columns and the geometry as well-known binary, some thousand at a time.
            target: Written.

        Returns:
            Rows.
        """
        ...
