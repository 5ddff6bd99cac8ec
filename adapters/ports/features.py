"""Tables of features: vector data ready for analysis."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from contracts.jobs.vectors import LoadMode, LoadReport, VectorTable


@dataclass(frozen=True, slots=True)
class FeatureLoad:
    """Features to be loaded."""

    key: str
    """Names the load: one that has been done is not done again."""
    table: VectorTable
    mode: LoadMode
    upsert_by: Sequence[str]
    """Columns, for the mode `upsert`."""
    features: Path
    """Parquet: the columns of the table, and `geom` as well-known binary in EPSG:4326."""


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table that exists."""

    table: VectorTable
    rows: int
    extent: tuple[float, float, float, float] | None
    """West, south, east, north; None: no row has a geometry."""


class Features(Protocol):
    """Tables of features in EPSG:4326; readers see a load whole or not at all.

    Every method raises `Unavailable` when the store does not answer.
    """

    async def load(self, load: FeatureLoad) -> LoadReport:
        """Load features into a table, all or none.

        Raises:
            RuleViolation: The mode does not fit: the table exists or not, its schema differs, or
                key columns are missing, empty or not unique.
        """
        ...

    async def table(self, name: str) -> StoredTable | None:
        """A table; None: there is none."""
        ...

    def rows(self, name: str) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
        """All rows, in the order of `fid`, some thousand at a time.

        Yields:
            Rows: `fid`, the columns of the table, and the geometry as well-known binary or None.

        Raises:
            RuleViolation: There is no such table.
        """
        ...
