"""A schedule as it was read, entities apart from what is wrong."""

from dataclasses import dataclass
from typing import Any

from adapters.ports.documents import ScheduleSource
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import Problem


@dataclass
class ReadSchedule:
    """Everything that one project of a file says."""

    entities: list[tuple[str, dict[str, Any]]]
    """Table and values."""
    rejected: list[RejectedRow]
    remarks: list[Problem]

    def of_table(self, table: str) -> list[dict[str, Any]]:
        return [values for name, values in self.entities if name == table]


def read_project(source: ScheduleSource, project: str) -> ReadSchedule:
    reading = ReadSchedule([], [], [])
    for item in source.read(project):
        match item:
            case RejectedRow():
                reading.rejected.append(item)
            case Problem():
                reading.remarks.append(item)
            case (_, table, values):
                reading.entities.append((table, values))
    return reading
