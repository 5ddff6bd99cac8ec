"""Records of a Primavera file, the same for both formats: raw text, before anything is resolved.

Every field is text as it stands in the file, `""` where the file holds nothing. The names of
the fields follow the meaning; `xer` and `pmxml` map them to the names of their format.
"""

from collections.abc import Iterator
from typing import NamedTuple, Protocol, TypeVar


class ProjectRecord(NamedTuple):
    """A project."""

    line: int
    id: str
    code: str
    name: str
    wbs: str
    """Id of the project's own WBS node, where the format names it."""
    data_date: str
    planned_start: str
    finish: str
    must_finish: str


class CalendarRecord(NamedTuple):
    """A calendar; without a project it is shared."""

    line: int
    id: str
    project: str
    name: str
    type: str
    hours_per_day: str
    data: str
    """Working times and exceptions in the notation of XER."""


class WbsRecord(NamedTuple):
    """A node of a work breakdown structure."""

    line: int
    id: str
    project: str
    parent: str
    code: str
    name: str
    sequence: str
    top: str
    """`Y` for the node that stands for the project itself."""


class UnitRecord(NamedTuple):
    """A unit of measure."""

    line: int
    id: str
    abbreviation: str
    name: str


class ResourceRecord(NamedTuple):
    """A resource."""

    line: int
    id: str
    code: str
    name: str
    type: str
    unit: str
    """Id of a unit of measure."""


class RoleRecord(NamedTuple):
    """A role."""

    line: int
    id: str
    code: str


class ActivityRecord(NamedTuple):
    """An activity; durations in hours."""

    line: int
    id: str
    project: str
    code: str
    name: str
    type: str
    status: str
    wbs: str
    calendar: str
    original_duration: str
    remaining_duration: str
    fraction_complete: str
    """0 to 1, where the format holds it directly."""
    percent_type: str
    physical_percent: str
    actual_labor: str
    actual_nonlabor: str
    remaining_labor: str
    remaining_nonlabor: str
    planned_start: str
    planned_finish: str
    actual_start: str
    actual_finish: str
    early_start: str
    early_finish: str
    late_start: str
    late_finish: str
    total_float: str
    constraint_type: str
    constraint_date: str


class RelationshipRecord(NamedTuple):
    """A relationship; lag in hours."""

    line: int
    predecessor: str
    successor: str
    predecessor_project: str
    successor_project: str
    type: str
    lag: str


class AssignmentRecord(NamedTuple):
    """A resource, a role or both at work on an activity."""

    line: int
    project: str
    activity: str
    resource: str
    role: str
    planned_units: str
    actual_units: str
    actual_overtime_units: str
    remaining_units: str
    planned_cost: str
    actual_cost: str
    actual_overtime_cost: str
    remaining_cost: str


class CodeTypeRecord(NamedTuple):
    """A type of activity code."""

    line: int
    id: str
    name: str


class CodeValueRecord(NamedTuple):
    """A value of a type of activity code."""

    line: int
    id: str
    value: str
    description: str


class ActivityCodeRecord(NamedTuple):
    """A code value on an activity."""

    line: int
    project: str
    activity: str
    code_type: str
    code_value: str


class UdfTypeRecord(NamedTuple):
    """A user-defined field."""

    line: int
    id: str
    name: str
    data_type: str
    subject: str


class UdfValueRecord(NamedTuple):
    """A value of a user-defined field."""

    line: int
    project: str
    type: str
    owner: str
    """Id of the activity, WBS node, project or resource."""
    text: str
    number: str
    date: str


Record = TypeVar("Record", bound=NamedTuple)


class Records(Protocol):
    """A file, opened and known to be complete; each kind can be read again and again."""

    format: str
    guessed_encoding: str | None

    def rows(self, kind: type[Record]) -> Iterator[Record]:
        """Records of one kind in the order of the file, one in memory at a time.

        Raises:
            UnreadableDocument: The file is damaged.
        """
        ...
