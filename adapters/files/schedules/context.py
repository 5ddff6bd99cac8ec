"""What the readers of one project share: its codes, and how an entity or a left-out row looks."""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

from adapters.files.schedules.codes import SpillingMap, WbsPaths
from adapters.files.schedules.records import ProjectRecord, Record, Records, WbsRecord
from adapters.files.schedules.values import CODE_LENGTH, Values, problem
from domain.imports.schedule_items import ScheduleItem
from domain.tabular.rows import RejectedRow

UNKNOWN = "the file does not hold what it refers to"
SEPARATOR = "\t"
"""Joins codes into one text of a map: cleaned codes hold no control characters."""


class ProjectContext:
    """One project while it is read; a context manager.

    Args:
        records: The file.
        project: The project.
        project_codes: Id to short name of every project of the file.

    Attributes:
        code: Short name of the project.
        values: Reads values and gathers remarks.
        wbs: Paths of the project's WBS.
        calendars, resources, activities: Id to code, filled as the tables are read.
        foreign_activities: Id to short name of the project and code.
    """

    def __init__(
        self, records: Records, project: ProjectRecord, project_codes: dict[str, str]
    ) -> None:
        self.records = records
        self.project = project
        self.project_codes = project_codes
        self.code = project_codes[project.id]
        self.values = Values()
        self.wbs = WbsPaths(self.own(WbsRecord), self.code)
        self.calendars = SpillingMap()
        self.resources = SpillingMap()
        self.activities = SpillingMap()
        self.foreign_activities = SpillingMap()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for codes in (self.calendars, self.resources, self.activities, self.foreign_activities):
            codes.close()

    def own(self, kind: type[Record]) -> Iterator[Record]:
        """Records of this project; `kind` has a `project` field.

        A record that names no project is of the only one of the file.
        """
        position = kind._fields.index("project")
        own = (self.project.id, "") if len(self.project_codes) == 1 else (self.project.id,)
        return (record for record in self.records.rows(kind) if record[position] in own)

    def of_activities(self, kind: type[Record]) -> Iterator[Record]:
        """Records of this project's activities; `kind` has the fields `project` and `activity`.

        A record that names no project is of its activity's, and where that is unknown as well, of
        this one, in which it is reported.
        """
        project, activity = kind._fields.index("project"), kind._fields.index("activity")
        for record in self.records.rows(kind):
            if record[project] == self.project.id or (
                not record[project] and self.foreign_activities.get(record[activity]) is None
            ):
                yield record

    def find_activity(self, activity_id: str) -> tuple[str, str] | None:
        """Project ('' for this one) and code of an activity of any project of the file."""
        own = self.activities.get(activity_id)
        if own is not None:
            return "", own
        foreign = self.foreign_activities.get(activity_id)
        if foreign is None:
            return None
        project, _, code = foreign.partition(SEPARATOR)
        return project, code

    def entity(self, line: int, table: str, **values: Any) -> ScheduleItem:
        """An entity of this project."""
        return line, table, {"primavera_project_id": self.code, **values}


def usable(code: str) -> bool:
    """Whether a code can be part of a key."""
    return 0 < len(code) <= CODE_LENGTH


def unusable(code: str) -> str:
    """Why it cannot."""
    return f"is longer than {CODE_LENGTH} characters" if code else "is missing"


def left_out(record: NamedTuple, table: str, column: str, value: str, reason: str) -> RejectedRow:
    """A record that cannot become an entity of `table`."""
    line, *texts = record
    named = zip(record._fields[1:], texts, strict=True)
    return RejectedRow(
        line=line,
        cells=(table, line, *(f"{name}: {text[:200]}" if text else None for name, text in named)),
        problems=(problem(line, column, value, reason),),
    )
