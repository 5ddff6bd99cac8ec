"""What hangs on the activities of a project: relationships, assignments, codes, own fields.

Everything here refers to something else by id. A row whose reference the file does not resolve is
skipped and reported. A relationship to a project that is not in the file is kept: both are known by
their ids, `id:77`, alone.
"""

from collections.abc import Iterator
from contextlib import closing

from adapters.files.schedules import vocabulary as words
from adapters.files.schedules.codes import SpillingMap
from adapters.files.schedules.context import (
    SEPARATOR,
    UNKNOWN,
    ProjectContext,
    left_out,
    unusable,
    usable,
)
from adapters.files.schedules.progress import total
from adapters.files.schedules.records import (
    ActivityCodeRecord,
    AssignmentRecord,
    CodeTypeRecord,
    CodeValueRecord,
    RelationshipRecord,
    RoleRecord,
    UdfTypeRecord,
    UdfValueRecord,
)
from adapters.files.schedules.values import CODE_LENGTH, clean_code, decimal_text
from domain.imports.schedule_items import ScheduleItem


def read_relationships(context: ProjectContext) -> Iterator[ScheduleItem]:
    """Relationships with either end in this project."""
    table = "schedule_relationships"
    for record in context.records.rows(RelationshipRecord):
        predecessor = _end(context, record.predecessor, record.predecessor_project)
        successor = _end(context, record.successor, record.successor_project)
        if not _has_end_here(context, record, predecessor, successor):
            continue
        kind = words.RELATIONSHIP_TYPES.get(record.type, record.type)
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
            subject = words.UDF_SUBJECTS.get(record.subject, "")
            kind = words.UDF_TYPES.get(record.data_type, record.data_type)
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
