"""Writes a project as PMXML."""

from datetime import datetime
from xml.sax.saxutils import escape

from schedule_job import RESOURCES, STEPS, Project


def element(name: str, value: object) -> str:
    if value in ("", None):
        return f'<{name} xsi:nil="true"/>'
    text = f"{value:%Y-%m-%dT%H:%M:%S}" if isinstance(value, datetime) else escape(str(value))
    return f"<{name}>{text}</{name}>"


def record(name: str, inner: str = "", **values: object) -> str:
    return f"<{name}>{''.join(element(*pair) for pair in values.items())}{inner}</{name}>"


def pmxml(project: Project) -> list[str]:
    own = project.id("project", project.code)
    kinds = {"TT_Mile": "Start Milestone", "TT_FinMile": "Finish Milestone"}
    links = {"PR_FS": "Finish to Start", "PR_SS": "Start to Start", "PR_FF": "Finish to Finish"}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<APIBusinessObjects xmlns="http://xmlns.oracle.com/Primavera/P6/V22.12/API/BusinessObjects"'
        ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">',
        record("UDFType", ObjectId=901, Title="Tank", DataType="Text", SubjectArea="Activity"),
        record("ActivityCodeType", ObjectId=501, Name="Discipline", Scope="Global"),
    ]
    disciplines = sorted({step[5] for step in STEPS})
    for code in disciplines:
        lines.append(
            record(
                "ActivityCode",
                ObjectId=project.id("code", code),
                CodeTypeObjectId=501,
                CodeValue=code[:3].upper(),
                Description=code,
            )
        )
    for code, name, hours in (("SITE", "Baustelle 6 x 10", 10), ("OFFICE", "Büro 5 x 8", 8)):
        number = project.id("calendar", code)
        lines.append(
            record("Calendar", ObjectId=number, Name=name, Type="Global", HoursPerDay=hours)
        )
    for code, (name, _) in RESOURCES.items():
        number = project.id("resource", code)
        lines.append(record("Resource", ObjectId=number, Id=code, Name=name, ResourceType="Labor"))
    lines.append("<Project>")
    lines.append(
        "".join(
            element(*pair)
            for pair in {
                "DataDate": project.data_date,
                "Id": project.code,
                "Name": project.name,
                "ObjectId": own,
                "PlannedStartDate": project.activities[0].start,
                "ScheduledFinishDate": max(a.finish for a in project.activities),
            }.items()
        )
    )
    for place, (path, name) in enumerate(project.wbs().items(), 1):
        above, _, code = path.rpartition(".")
        parent = project.id("wbs", above) if above else ""
        lines.append(
            record(
                "WBS",
                Code=code,
                Name=name,
                ObjectId=project.id("wbs", path),
                ParentObjectId=parent,
                SequenceNumber=place,
            )
        )
    for activity in project.activities:
        code = record(
            "Code", TypeObjectId=501, ValueObjectId=project.id("code", activity.discipline)
        )
        udf = record("UDF", TypeObjectId=901, TextValue=f"T-{activity.code[:3]}")
        started = activity.start if activity.done else ""
        ended = activity.finish if activity.done == 100 else ""
        lines.append(
            record(
                "Activity",
                inner=code + (udf if "-SPL-" in activity.code else ""),
                ActualFinishDate=ended,
                ActualStartDate=started,
                CalendarObjectId=project.id("calendar", activity.calendar),
                Id=activity.code,
                Name=activity.name,
                ObjectId=project.id("task", activity.code),
                PercentComplete=activity.done / 100,
                PlannedDuration=activity.hours,
                PlannedFinishDate=activity.finish,
                PlannedStartDate=activity.start,
                RemainingDuration=activity.hours * (100 - activity.done) // 100,
                RemainingEarlyFinishDate="" if ended else activity.finish,
                RemainingEarlyStartDate="" if ended else activity.start,
                Status="Completed" if ended else "In Progress" if started else "Not Started",
                Type=kinds.get(activity.kind, "Task Dependent"),
                WBSObjectId=project.id("wbs", activity.wbs),
            )
        )
    for before, after, kind, lag in project.links:
        lines.append(
            record(
                "Relationship",
                Lag=lag,
                PredecessorActivityObjectId=project.id("task", before),
                PredecessorProjectObjectId=own,
                SuccessorActivityObjectId=project.id("task", after),
                SuccessorProjectObjectId=own,
                Type=links[kind],
            )
        )
    for activity in project.activities:
        if activity.crew:
            lines.append(
                record(
                    "ResourceAssignment",
                    ActivityObjectId=project.id("task", activity.code),
                    PlannedUnits=activity.hours * 4,
                    RemainingUnits=activity.hours * 4,
                    ResourceObjectId=project.id("resource", activity.crew),
                )
            )
    lines.append("</Project>")
    baseline = record("Activity", Id="PM-0000", Name="Alter Stand", ObjectId=1)
    lines.append(record("BaselineProject", inner=baseline, Id=f"{project.code} - B1", ObjectId=2))
    return [*lines, "</APIBusinessObjects>"]
