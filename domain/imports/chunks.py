"""What a load passes to the store, and its progress."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from contracts.imports import (
    Counts,
)
from domain.tabular.rows import Cell, RejectedRow


@dataclass(frozen=True, slots=True)
class TaskKey:
    """Names one import."""

    project_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class RowChunk:
    """Some rows of one table, valid and unique by natural key within the file so far."""

    table: str
    columns: tuple[str, ...]
    """Natural key and every column that the file has."""
    rows: Sequence[tuple[Any, ...]]
    """Python values in the order of `columns`."""
    lines: Sequence[int]
    """Line number of each row."""
    cells: Sequence[Sequence[Cell]]
    """Each row as read, for the report, should the store refuse it; empty where none is made."""
    rejected: Sequence[RejectedRow]
    """Rows of this stretch that did not get this far."""
    cursor: int
    """Rows of the source consumed when this chunk is in."""
    header: tuple[str, ...] = ()
    """Header that the load begins under with this chunk; empty: the one it has."""


@dataclass(frozen=True, slots=True)
class LoadMark:
    """How far a load has come; written with each chunk, in its transaction."""

    cursor: int = 0
    counts: Counts = field(default_factory=Counts)
    problem_count: int = 0
    header: tuple[str, ...] = ()
    finished: bool = False
