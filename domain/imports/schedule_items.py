"""Projects and entities of a schedule, as readers deliver them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from contracts.imports import Problem
from domain.tabular.rows import RejectedRow


@dataclass(frozen=True, slots=True)
class ScheduleProject:
    """One project of a schedule file."""

    primavera_project_id: str
    """Its short name, which planners may change from update to update."""
    object_id: str
    name: str | None
    data_date: datetime | None
    planned_start: datetime | None
    finish: datetime | None
    activities: int


ScheduleItem = tuple[int, str, dict[str, Any]] | RejectedRow | Problem
"""What a schedule holds, item by item.

An entity: line, table, and the values of its key and columns. A row that is left out: its cells
are the table, the line, and each value after its name. A value that was emptied or cut, right
behind its entity, which is still loaded.
"""
