"""The entities of one Primavera project, whichever format they come from."""

from collections.abc import Iterator
from contextlib import closing

from adapters.files.schedules import vocabulary as words
from adapters.files.schedules.calendars import (
    WorkingTimes,
    read_pmxml_times,
    read_xer_times,
)
from adapters.files.schedules.codes import SpillingMap
from adapters.files.schedules.context import (
    SEPARATOR,
    UNKNOWN,
    ProjectContext,
    left_out,
    unusable,
    usable,
)
from adapters.files.schedules.links import (
    read_activity_codes,
    read_assignments,
    read_relationships,
    read_udf_values,
)
from adapters.files.schedules.progress import percent_complete
from adapters.files.schedules.records import (
    ActivityRecord,
    CalendarRecord,
    ProjectRecord,
    Records,
    ResourceRecord,
    UnitRecord,
)
from adapters.files.schedules.values import clean_code
from domain.imports.schedule_items import ScheduleItem


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
