"""The entities of one Primavera project, whichever format they come from.

What hangs on the activities of a project: relationships, assignments, codes, own fields.

Everything here refers to something else by id. A row whose reference the file does not resolve is
skipped and reported. A relationship to a project that is not in the file is kept: both are known by
their ids, `id:77`, alone.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from decimal import Decimal
from types import TracebackType
from typing import Any, NamedTuple, Self

from adapters.files.schedules import records
from adapters.files.schedules import records as words
from adapters.files.schedules.records import (
    CODE_LENGTH,
    PATH_LENGTH,
    ActivityCodeRecord,
    ActivityRecord,
    AssignmentRecord,
    CalendarRecord,
    CodeTypeRecord,
    CodeValueRecord,
    ProjectRecord,
    Record,
    Records,
    RelationshipRecord,
    ResourceRecord,
    RoleRecord,
    UdfTypeRecord,
    UdfValueRecord,
    UnitRecord,
    Values,
    WbsRecord,
    WorkingTimes,
    clean_code,
    decimal_text,
    parse_number,
    problem,
    read_pmxml_times,
    read_xer_times,
)
from adapters.ports.errors import UnreadableDocument
from workflows.imports.schedules import ScheduleItem
from workflows.shared.cells import RejectedRow

IN_MEMORY = 200_000
"""Entries of a map that stay in memory, about 170 bytes each; the rest goes to disk."""
WBS_NODES = 100_000
"""Nodes of one project; the largest real programmes hold some ten thousands."""
WBS_DEPTH = 100


class SpillingMap:
    """Text to text; what does not fit into memory goes to a temporary database on disk."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._in_memory = in_memory
        self._near: dict[str, str] = {}
        self._far: sqlite3.Connection | None = None

    def get(self, key: str) -> str | None:
        """The value of a key, or None."""
        value = self._near.get(key)
        if value is not None or self._far is None:
            return value
        row = self._far.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        if key in self._near or len(self._near) < self._in_memory:
            self._near[key] = value
            return
        if self._far is None:
            self._far = _temporary_database()
        self._far.execute("INSERT OR REPLACE INTO entries VALUES (?, ?)", (key, value))

    def close(self) -> None:
        """Forget everything."""
        self._near.clear()
        if self._far is not None:
            self._far.close()
            self._far = None


def _temporary_database() -> sqlite3.Connection:
    # A reader moves between the threads of a pool, though never used by two at a time.
    database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA cache_size = -8000")
    database.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
    database.execute("BEGIN")
    return database


class WbsPaths:
    """The WBS of one project: which path of short names leads to a node.

    A node without a parent in the project is its top when it is marked so or is called like the
    project; any other one hangs below the top.

    Args:
        nodes: The project's nodes.
        project_code: The project's short name, which stands for the top where the file has none.

    Raises:
        UnreadableDocument: More nodes than any schedule has.
    """

    def __init__(self, nodes: Iterable[WbsRecord], project_code: str) -> None:
        self.nodes: dict[str, WbsRecord] = {}
        for node in nodes:
            if len(self.nodes) >= WBS_NODES:
                raise UnreadableDocument(f"the project has more than {WBS_NODES:,} WBS nodes")
            self.nodes.setdefault(node.id, node)
        self.top = next((node for node in self.nodes.values() if node.top == "Y"), None) or next(
            (
                node
                for node in self.nodes.values()
                if node.parent not in self.nodes and clean_code(node.code) == project_code
            ),
            None,
        )
        self.top_code = (clean_code(self.top.code) if self.top else "") or project_code
        self._paths: dict[str, str | None] = {}
        if self.top:
            self._paths[self.top.id] = self.top_code

    def path(self, node_id: str) -> str | None:
        """Dotted path from the top; None for a node that is unknown or cannot have one.

        Nodes cannot have a path when a parent lacks a short name, when their parents form a
        circle, or when the path is longer than a key may be.
        """
        climbed: list[WbsRecord] = []
        while node_id not in self._paths:
            node = self.nodes.get(node_id)
            if node is None and not climbed:
                return None
            if node is None:
                break
            climbed.append(node)
            if len(climbed) > WBS_DEPTH:
                self._paths.update((lost.id, None) for lost in climbed)
                return None
            node_id = node.parent
        path = self._paths.get(node_id, self.top_code)
        for node in reversed(climbed):
            code = clean_code(node.code)
            path = f"{path}.{code}" if path and code else None
            if path and len(path) > PATH_LENGTH:
                path = None
            self._paths[node.id] = path
        return path

    def parent_path(self, node: WbsRecord) -> str | None:
        """Path of the parent; None for the top."""
        if self.top and node.id == self.top.id:
            return None
        return self.path(node.parent) if node.parent in self.nodes else self.top_code


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


_HUNDRED = Decimal(100)
_SCALE = Decimal("0.000001")


def total(*parts: Decimal | None) -> Decimal | None:
    """Sum of the parts that are there; None when there is none."""
    present = [part for part in parts if part is not None]
    return sum(present, Decimal(0)) if present else None


def percent_complete(record: ActivityRecord, values: Values) -> Decimal | None:
    """Percent from 0 to 100, by the activity's own percent complete type.

    Physical percent is what a person entered. Duration percent is the part of the original
    duration that no longer remains, units percent the actual part of all units at completion.
    None where the file lacks what the type needs.
    """
    if record.fraction_complete:
        fraction = values.number(record.line, "percent_complete", record.fraction_complete)
        return None if fraction is None else _bounded(fraction * _HUNDRED)
    if record.status == "TK_Complete":
        return _HUNDRED
    match record.percent_type:
        case "CP_Drtn":
            return _duration_percent(record)
        case "CP_Units":
            done = total(_quiet(record.actual_labor), _quiet(record.actual_nonlabor))
            left = total(_quiet(record.remaining_labor), _quiet(record.remaining_nonlabor))
            return _share(done, total(done, left))
        case _:
            return values.number(record.line, "percent_complete", record.physical_percent)


def _duration_percent(record: ActivityRecord) -> Decimal | None:
    original = _quiet(record.original_duration)
    remaining = _quiet(record.remaining_duration)
    if original is None or remaining is None:
        return None
    if record.status == "TK_NotStart":
        return Decimal(0)
    return _share(original - remaining, original)


def _share(part: Decimal | None, whole: Decimal | None) -> Decimal | None:
    if part is None or whole is None:
        return None
    return _bounded(part * _HUNDRED / whole) if whole > 0 else Decimal(0)


def _bounded(percent: Decimal) -> Decimal:
    return min(max(percent, Decimal(0)), _HUNDRED).quantize(_SCALE)


def _quiet(raw: str) -> Decimal | None:
    """A number; None where there is none, or where it is reported elsewhere or fits no column."""
    try:
        return parse_number(raw.strip()) if raw.strip() else None
    except ValueError:
        return None


def read_relationships(context: ProjectContext) -> Iterator[ScheduleItem]:
    """Relationships with either end in this project."""
    table = "schedule_relationships"
    for record in context.records.rows(RelationshipRecord):
        predecessor = _end(context, record.predecessor, record.predecessor_project)
        successor = _end(context, record.successor, record.successor_project)
        if not _has_end_here(context, record, predecessor, successor):
            continue
        kind = records.RELATIONSHIP_TYPES.get(record.type, record.type)
        if predecessor is None:
            yield left_out(record, table, "predecessor_code", record.predecessor, UNKNOWN)
        elif successor is None:
            yield left_out(record, table, "successor_code", record.successor, UNKNOWN)
        elif kind not in ("FS", "SS", "FF", "SF"):
            reason = "is not a relationship type (FS, SS, FF, SF)"
            yield left_out(record, table, "type", record.type, reason)
        else:
            yield context.entity(
                record.line,
                table,
                predecessor_code=predecessor[1],
                successor_code=successor[1],
                type=kind,
                predecessor_project=predecessor[0],
                successor_project=successor[0],
                lag_hours=context.values.number(record.line, "lag_hours", record.lag),
            )


def _end(context: ProjectContext, activity: str, project: str) -> tuple[str, str] | None:
    """Project ('' for this one) and code of an activity."""
    found = context.find_activity(activity)
    if found is None and activity and project and project not in context.project_codes:
        return f"id:{clean_code(project)}"[:CODE_LENGTH], f"id:{clean_code(activity)}"[:CODE_LENGTH]
    return found


def _has_end_here(
    context: ProjectContext,
    record: RelationshipRecord,
    predecessor: tuple[str, str] | None,
    successor: tuple[str, str] | None,
) -> bool:
    """Whether an end is in this project; one whose projects the row does not say may be."""
    projects = (record.predecessor_project, record.successor_project)
    if context.project.id in projects:
        return True
    if all(projects):
        return False
    ends = (predecessor, successor)
    return any(end is None or not end[0] for end in ends)


def read_assignments(context: ProjectContext) -> Iterator[ScheduleItem]:
    """Resources and roles assigned to the project's activities."""
    table = "schedule_assignments"
    with closing(SpillingMap()) as roles, closing(SpillingMap()) as counted:
        for found in context.records.rows(RoleRecord):
            roles.put(found.id, clean_code(found.code))
        for record in context.of_activities(AssignmentRecord):
            task = context.activities.get(record.activity)
            resource = context.resources.get(record.resource) if record.resource else ""
            role = roles.get(record.role) if record.role else ""
            if task is None:
                yield left_out(record, table, "task_code", record.activity, UNKNOWN)
            elif resource is None:
                yield left_out(record, table, "resource_code", record.resource, UNKNOWN)
            elif role is None or len(role) > CODE_LENGTH:
                yield left_out(record, table, "role", record.role, UNKNOWN)
            else:
                key = SEPARATOR.join((task, resource, role))
                sequence = int(counted.get(key) or 0) + 1
                counted.put(key, str(sequence))
                yield _assignment(context, record, (task, resource, role, sequence))


def _assignment(
    context: ProjectContext, record: AssignmentRecord, key: tuple[str, str, str, int]
) -> ScheduleItem:
    line, number = record.line, context.values.number
    task, resource, role, sequence = key
    return context.entity(
        line,
        "schedule_assignments",
        task_code=task,
        resource_code=resource,
        role=role,
        sequence=sequence,
        planned_units=number(line, "planned_units", record.planned_units),
        actual_units=total(
            number(line, "actual_units", record.actual_units),
            number(line, "actual_units", record.actual_overtime_units),
        ),
        remaining_units=number(line, "remaining_units", record.remaining_units),
        planned_cost=number(line, "planned_cost", record.planned_cost),
        actual_cost=total(
            number(line, "actual_cost", record.actual_cost),
            number(line, "actual_cost", record.actual_overtime_cost),
        ),
        remaining_cost=number(line, "remaining_cost", record.remaining_cost),
    )


def read_activity_codes(context: ProjectContext) -> Iterator[ScheduleItem]:
    """Values of activity codes on the project's activities."""
    table = "schedule_activity_codes"
    with closing(SpillingMap()) as types, closing(SpillingMap()) as code_values:
        for code_type in context.records.rows(CodeTypeRecord):
            types.put(code_type.id, clean_code(code_type.name))
        for value in context.records.rows(CodeValueRecord):
            joined = f"{clean_code(value.value)}{SEPARATOR}{value.description}"
            code_values.put(value.id, joined)
        for record in context.of_activities(ActivityCodeRecord):
            task = context.activities.get(record.activity)
            name = types.get(record.code_type) or ""
            found = code_values.get(record.code_value)
            if task is None:
                yield left_out(record, table, "task_code", record.activity, UNKNOWN)
            elif not usable(name):
                yield left_out(record, table, "code_type", record.code_type, UNKNOWN)
            elif found is None:
                yield left_out(record, table, "code_value", record.code_value, UNKNOWN)
            else:
                code, _, description = found.partition(SEPARATOR)
                text = context.values.text
                yield context.entity(
                    record.line,
                    table,
                    task_code=task,
                    code_type=name,
                    code_value=text(record.line, "code_value", code),
                    description=text(record.line, "description", description),
                )


def read_udf_values(context: ProjectContext) -> Iterator[ScheduleItem]:
    """User-defined fields of the project, its WBS and activities, and of resources."""
    with closing(SpillingMap()) as types:
        for record in context.records.rows(UdfTypeRecord):
            subject = records.UDF_SUBJECTS.get(record.subject, "")
            kind = records.UDF_TYPES.get(record.data_type, record.data_type)
            types.put(
                record.id, SEPARATOR.join((subject, clean_code(kind), clean_code(record.name)))
            )
        for value in context.records.rows(UdfValueRecord):
            if value.project in ("", context.project.id):
                item = _udf_value(context, value, types.get(value.type))
                if item is not None:
                    yield item


def _udf_value(
    context: ProjectContext, record: UdfValueRecord, found: str | None
) -> ScheduleItem | None:
    """The entity; None when the field belongs to what is not read, or to another project."""
    table = "schedule_udf_values"
    if found is None:
        return left_out(record, table, "udf", record.type, UNKNOWN)
    entity, kind, name = found.split(SEPARATOR)
    if not entity:
        return None
    owner = _owner_code(context, entity, record.owner)
    if owner is None:
        if not record.project and entity != "resource":
            return None
        return left_out(record, table, "entity_code", record.owner, UNKNOWN)
    if not usable(name):
        return left_out(record, table, "udf", name, unusable(name))
    return context.entity(
        record.line,
        table,
        entity=entity,
        entity_code=owner,
        udf=name,
        type=kind or None,
        value=_udf_text(context, record),
    )


def _owner_code(context: ProjectContext, entity: str, owner: str) -> str | None:
    match entity:
        case "activity":
            return context.activities.get(owner)
        case "wbs":
            return context.wbs.path(owner)
        case "project":
            return context.code if owner == context.project.id else None
        case _:
            return context.resources.get(owner)


def _udf_text(context: ProjectContext, record: UdfValueRecord) -> str | None:
    line, values = record.line, context.values
    if record.text:
        return values.text(line, "value", record.text)
    if record.number:
        number = values.number(line, "value", record.number)
        return None if number is None else decimal_text(number)
    moment = values.moment(line, "value", record.date)
    return None if moment is None else moment.isoformat()


def read_entities(
    records: Records, project: ProjectRecord, project_codes: dict[str, str]
) -> Iterator[ScheduleItem]:
    """Every entity of a project in the order of the port, table by table.

    What is left out stands where it was met: a row as `RejectedRow`, a value as `Problem`.

    Args:
        records: The file.
        project: The project.
        project_codes: Id to short name of every project of the file.

    Raises:
        UnreadableDocument: The file is damaged or hostile.
    """
    with ProjectContext(records, project, project_codes) as context:
        remarks = context.values.remarks
        for read_table in (
            _read_project,
            _read_calendars,
            _read_wbs,
            _read_resources,
            _read_activities,
            read_relationships,
            read_assignments,
            read_activity_codes,
            read_udf_values,
        ):
            for item in read_table(context):
                yield item
                if remarks:
                    yield from remarks
                    remarks.clear()


def _read_project(context: ProjectContext) -> Iterator[ScheduleItem]:
    record, values, top = context.project, context.values, context.wbs.top
    name = record.name or (top.name if top else "")
    finish = record.finish or record.must_finish
    yield context.entity(
        record.line,
        "schedule_projects",
        object_id=record.id,
        name=values.text(record.line, "name", name),
        data_date=values.moment(record.line, "data_date", record.data_date),
        planned_start=values.moment(record.line, "planned_start", record.planned_start),
        finish=values.moment(record.line, "finish", finish),
    )


def _read_calendars(context: ProjectContext) -> Iterator[ScheduleItem]:
    table = "schedule_calendars"
    for record in context.records.rows(CalendarRecord):
        code = clean_code(record.name)
        if usable(code):
            context.calendars.put(record.id, code)
        if record.project not in ("", context.project.id):
            continue
        if not usable(code):
            yield left_out(record, table, "code", code, unusable(code))
            continue
        line, times = record.line, _working_times(context, record)
        yield context.entity(
            line,
            table,
            code=code,
            name=code,
            type=words.CALENDAR_TYPES.get(record.type, record.type) or None,
            hours_per_day=context.values.number(line, "hours_per_day", record.hours_per_day),
            working_times=times.week_text(),
            exceptions=times.exceptions_text(),
        )


def _working_times(context: ProjectContext, record: CalendarRecord) -> WorkingTimes:
    if not record.data:
        return WorkingTimes()
    read = read_xer_times if context.records.format == "xer" else read_pmxml_times
    try:
        return read(record.data)
    except ValueError as error:
        reason = f"{error}; the working times were left empty"
        context.values.remark(record.line, "working_times", record.data, reason)
        return WorkingTimes()


def _read_wbs(context: ProjectContext) -> Iterator[ScheduleItem]:
    wbs, values = context.wbs, context.values
    if wbs.top is None:
        name = values.text(context.project.line, "name", context.project.name)
        yield _wbs_entity(context, context.project.line, wbs.top_code, name, None, None)
    for record in wbs.nodes.values():
        path, line = wbs.path(record.id), record.line
        if path is None:
            reason = "its short name or that of a parent is missing, circular or too long"
            yield left_out(record, "schedule_wbs", "wbs_code", record.code, reason)
            continue
        name = values.text(line, "name", record.name)
        sequence = values.integer(line, "sequence", record.sequence)
        yield _wbs_entity(context, line, path, name, wbs.parent_path(record), sequence)


def _wbs_entity(
    context: ProjectContext,
    line: int,
    path: str,
    name: str | None,
    parent: str | None,
    sequence: int | None,
) -> ScheduleItem:
    return context.entity(
        line, "schedule_wbs", wbs_code=path, name=name, parent_code=parent, sequence=sequence
    )


def _read_resources(context: ProjectContext) -> Iterator[ScheduleItem]:
    table = "schedule_resources"
    with closing(SpillingMap()) as units:
        for unit in context.records.rows(UnitRecord):
            units.put(unit.id, clean_code(unit.abbreviation or unit.name))
        for record in context.records.rows(ResourceRecord):
            code = clean_code(record.code)
            if not usable(code):
                yield left_out(record, table, "resource_code", code, unusable(code))
                continue
            context.resources.put(record.id, code)
            yield context.entity(
                record.line,
                table,
                resource_code=code,
                name=context.values.text(record.line, "name", record.name),
                type=words.RESOURCE_TYPES.get(record.type, record.type) or None,
                unit=units.get(record.unit),
            )


def _read_activities(context: ProjectContext) -> Iterator[ScheduleItem]:
    for record in context.records.rows(ActivityRecord):
        code = clean_code(record.code)
        if not record.project and len(context.project_codes) > 1:
            reason = "names no project, and the file holds several"
            yield left_out(record, "schedule_activities", "project", record.code, reason)
        elif record.project not in ("", context.project.id):
            owner = context.project_codes.get(record.project)
            if usable(code) and owner is not None:
                context.foreign_activities.put(record.id, f"{owner}{SEPARATOR}{code}")
        elif usable(code):
            context.activities.put(record.id, code)
            yield _activity(context, record, code)
        else:
            yield left_out(record, "schedule_activities", "task_code", code, unusable(code))


def _activity(context: ProjectContext, record: ActivityRecord, code: str) -> ScheduleItem:
    line, values = record.line, context.values
    number, moment = values.number, values.moment
    constraint = record.constraint_type
    return context.entity(
        line,
        "schedule_activities",
        task_code=code,
        name=values.text(line, "name", record.name),
        type=words.ACTIVITY_TYPES.get(record.type, record.type) or None,
        status=words.STATUSES.get(record.status, record.status) or None,
        wbs_code=_wbs_code(context, record),
        calendar=_calendar(context, record),
        original_duration_hours=number(line, "original_duration_hours", record.original_duration),
        remaining_duration_hours=number(
            line, "remaining_duration_hours", record.remaining_duration
        ),
        percent_complete=percent_complete(record, values),
        planned_start=moment(line, "planned_start", record.planned_start),
        planned_finish=moment(line, "planned_finish", record.planned_finish),
        actual_start=moment(line, "actual_start", record.actual_start),
        actual_finish=moment(line, "actual_finish", record.actual_finish),
        early_start=moment(line, "early_start", record.early_start),
        early_finish=moment(line, "early_finish", record.early_finish),
        late_start=moment(line, "late_start", record.late_start),
        late_finish=moment(line, "late_finish", record.late_finish),
        total_float_hours=number(line, "total_float_hours", record.total_float),
        constraint_type=words.CONSTRAINTS.get(constraint, constraint) or None,
        constraint_date=moment(line, "constraint_date", record.constraint_date),
    )


def _wbs_code(context: ProjectContext, record: ActivityRecord) -> str | None:
    """Path of the activity's node; PMXML names none for an activity right below the project."""
    if record.wbs in ("", context.project.wbs):
        return context.wbs.path(record.wbs) or context.wbs.top_code
    path = context.wbs.path(record.wbs)
    if path is None:
        context.values.remark(record.line, "wbs_code", record.wbs, UNKNOWN)
    return path


def _calendar(context: ProjectContext, record: ActivityRecord) -> str | None:
    calendar = context.calendars.get(record.calendar)
    if calendar is None and record.calendar:
        context.values.remark(record.line, "calendar", record.calendar, UNKNOWN)
    return calendar
