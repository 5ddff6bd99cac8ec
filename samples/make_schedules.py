"""Writes the sample schedules beside this file: `python samples/make_schedules.py`.

unit100.xer          piping of a process unit, cp1252 with umlauts; deliberate mistakes: short rows,
                     an unknown table, a name over two lines, a relationship to an activity
                     that is not there, a task code twice, a duration that is not a number
unit100-update.xer   the same project a month later, with other ids: one activity is gone, one is
                     new, others have begun or moved
two-projects.xer     two projects, tied by one relationship
tankfarm.xml         another project as PMXML
"""

import uuid
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

from schedule_job import (
    RESOURCES,
    ROLES,
    STEPS,
    TANK_AREAS,
    UNIT_AREAS,
    Activity,
    Project,
    piping,
    updated,
)
from schedule_pmxml import pmxml

FOLDER = Path(__file__).parent


def xer_time(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M}" if moment else ""


def table(name: str, fields: str, rows: Iterator[tuple[object, ...]]) -> Iterator[str]:
    yield f"%T\t{name}"
    yield "%F\t" + "\t".join(fields.split())
    for row in rows:
        yield "%R\t" + "\t".join(map(str, row))


def xer(projects: list[Project]) -> list[str]:
    """The lines of an XER file, tables in the order in which P6 exports them."""
    first = projects[0]
    lines = ["ERMHDR\t22.12\t2025-04-01\tProject\tplaner\tM. Müller\tdbxDatabaseNoName\tPM\tEUR"]
    lines += table(
        "CURRTYPE",
        "curr_id decimal_digit_cnt curr_symbol decimal_symbol digit_group_symbol curr_type",
        iter([(1, 2, "€", ",", ".", "Euro")]),
    )
    lines += table(
        "UDFTYPE",
        "udf_type_id table_name udf_type_name udf_type_label logical_data_type",
        iter(
            [
                (901, "TASK", "user_field_901", "Isometrie", "FT_TEXT"),
                (902, "TASK", "user_field_902", "Nahtzahl", "FT_INT"),
                (903, "PROJWBS", "user_field_903", "Zugesagt", "FT_END_DATE"),
                (904, "TASKRSRC", "user_field_904", "Lohngruppe", "FT_TEXT"),
            ]
        ),
    )
    lines += table("ROLES", "role_id role_short_name role_name", _roles(first))
    lines += table(
        "PROJECT",
        "proj_id proj_short_name clndr_id last_recalc_date plan_start_date plan_end_date"
        " scd_end_date guid",
        (
            (
                project.id("project", project.code),
                project.code,
                first.id("calendar", "SITE"),
                xer_time(project.data_date),
                xer_time(project.activities[0].start),
                "",
                xer_time(max(activity.finish for activity in project.activities)),
                _guid(project, project.code),
            )
            for project in projects
        ),
    )
    lines += table(
        "CALENDAR",
        "clndr_id proj_id clndr_name clndr_type day_hr_cnt clndr_data",
        _calendars(first),
    )
    lines += table(
        "PROJWBS",
        "wbs_id proj_id seq_num proj_node_flag wbs_short_name wbs_name parent_wbs_id",
        (row for project in projects for row in _wbs(project)),
    )
    lines += table("UMEASURE", "unit_id unit_abbrev unit_name", iter([(11, "h", "Stunde")]))
    lines += table(
        "RSRC",
        "rsrc_id rsrc_short_name rsrc_name rsrc_type unit_id",
        (
            (first.id("resource", code), code, name, "RT_Labor", 11)
            for code, (name, _) in RESOURCES.items()
        ),
    )
    lines += table(
        "ACTVTYPE",
        "actv_code_type_id actv_code_type actv_code_type_scope",
        iter([(first.id("code", "Discipline"), "Discipline", "AS_Global")]),
    )
    lines += table(
        "ACTVCODE",
        "actv_code_id actv_code_type_id actv_code_name short_name",
        (
            (first.id("code", name), first.id("code", "Discipline"), name, name[:3].upper())
            for name in sorted({step[5] for step in STEPS})
        ),
    )
    lines += table(
        "TASK",
        "task_id proj_id wbs_id clndr_id phys_complete_pct complete_pct_type task_type status_code"
        " task_code task_name total_float_hr_cnt remain_drtn_hr_cnt target_drtn_hr_cnt"
        " target_start_date target_end_date early_start_date early_end_date late_start_date"
        " late_end_date guid act_start_date act_end_date cstr_type cstr_date",
        (
            _task(project, activity, first)
            for project in projects
            for activity in project.activities
        ),
    )
    lines += table(
        "TASKPRED",
        "task_pred_id task_id pred_task_id proj_id pred_proj_id pred_type lag_hr_cnt",
        (row for project in projects for row in _links(project)),
    )
    lines += table(
        "TASKRSRC",
        "taskrsrc_id task_id proj_id role_id rsrc_id target_qty act_reg_qty act_ot_qty remain_qty"
        " target_cost act_reg_cost act_ot_cost remain_cost",
        (row for project in projects for row in _assignments(project, first)),
    )
    lines += table(
        "TASKACTV",
        "task_id actv_code_type_id actv_code_id proj_id",
        (
            (
                project.id("task", activity.code),
                first.id("code", "Discipline"),
                first.id("code", activity.discipline),
                project.id("project", project.code),
            )
            for project in projects
            for activity in project.activities
        ),
    )
    lines += table(
        "UDFVALUE",
        "udf_type_id fk_id proj_id udf_date udf_number udf_text",
        (row for project in projects for row in _udfs(project)),
    )
    return [*lines, "%E"]


def _guid(project: Project, code: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{project.first_id}/{code}").hex


def _roles(project: Project) -> Iterator[tuple[object, ...]]:
    return ((project.id("role", code), code, name) for code, name in ROLES.items())


def _calendars(project: Project) -> Iterator[tuple[object, ...]]:
    site = _calendar_data(range(2, 8), ("07:00", "12:00"), ("12:30", "17:30"))
    office = _calendar_data(range(2, 7), ("08:00", "12:00"), ("13:00", "17:00"))
    yield project.id("calendar", "SITE"), "", "Baustelle 6 x 10", "CA_Base", 10, site
    yield project.id("calendar", "OFFICE"), "", "Büro 5 x 8", "CA_Base", 8, office


def _calendar_data(days: Iterable[int], *periods: tuple[str, str]) -> str:
    """Days from 1, Sunday, and their periods; 1 May 2025 is free, the day after a short one."""
    work = "".join(f"(0||{n}(s|{start}|f|{end})())" for n, (start, end) in enumerate(periods))
    week = "".join(f"\x7f\x7f(0||{day}()({work if day in days else ''}))" for day in range(1, 8))
    short = f"(0||0(s|{periods[0][0]}|f|{periods[0][1]})())"
    return (
        f"(0||CalendarData()(\x7f\x7f  (0||DaysOfWeek()({week}))"
        f"\x7f\x7f  (0||Exceptions()((0||0(d|45778)())(0||1(d|45779)({short}))))))"
    )


def _wbs(project: Project) -> Iterator[tuple[object, ...]]:
    owner = project.id("project", project.code)
    top = project.id("wbs", project.code)
    yield top, owner, 0, "Y", project.code, project.name, 77
    for place, (path, name) in enumerate(project.wbs().items(), 1):
        above, _, code = path.rpartition(".")
        parent = project.id("wbs", above) if above else top
        yield project.id("wbs", path), owner, place, "N", code, name, parent


def _task(project: Project, activity: Activity, first: Project) -> tuple[object, ...]:
    started, ended = activity.done > 0, activity.done == 100
    status = "TK_Complete" if ended else "TK_Active" if started else "TK_NotStart"
    remaining = activity.hours * (100 - activity.done) // 100
    late = timedelta(days=5)
    return (
        project.id("task", activity.code),
        project.id("project", project.code),
        project.id("wbs", activity.wbs),
        first.id("calendar", activity.calendar),
        activity.done,
        "CP_Phys",
        activity.kind,
        status,
        activity.code,
        activity.name,
        "" if ended else 40,
        remaining,
        activity.hours,
        xer_time(activity.start),
        xer_time(activity.finish),
        "" if ended else xer_time(activity.start),
        "" if ended else xer_time(activity.finish),
        "" if ended else xer_time(activity.start + late),
        "" if ended else xer_time(activity.finish + late),
        _guid(project, activity.code),
        xer_time(activity.start) if started else "",
        xer_time(activity.finish) if ended else "",
        "CS_MSOA" if activity.code == "PM-0000" else "",
        xer_time(activity.start) if activity.code == "PM-0000" else "",
    )


def _links(project: Project) -> Iterator[tuple[object, ...]]:
    owner = project.id("project", project.code)
    for number, (before, after, kind, lag) in enumerate(project.links):
        yield (
            project.first_id + 7000 + number,
            project.id("task", after),
            project.id("task", before),
            owner,
            owner,
            kind,
            lag,
        )


def _assignments(project: Project, first: Project) -> Iterator[tuple[object, ...]]:
    crewed = [activity for activity in project.activities if activity.crew]
    for number, activity in enumerate(crewed):
        units = activity.hours * 4
        rate = float(RESOURCES[activity.crew][1])
        done = units * activity.done // 100
        yield (
            project.first_id + 8000 + number,
            project.id("task", activity.code),
            project.id("project", project.code),
            first.id("role", "LEAD") if activity.crew == "FITTER" else "",
            first.id("resource", activity.crew),
            units,
            done,
            "",
            units - done,
            f"{units * rate:g}",
            f"{done * rate:g}",
            "",
            f"{(units - done) * rate:g}",
        )


def _udfs(project: Project) -> Iterator[tuple[object, ...]]:
    owner = project.id("project", project.code)
    for activity in project.activities:
        if "-SPL-" in activity.code:
            task = project.id("task", activity.code)
            yield 901, task, owner, "", "", f"ISO-{activity.code[:3]}-0001 ff."
            yield 902, task, owner, "", activity.hours * 3, ""
    yield 903, project.id("wbs", "TST"), owner, "2025-11-28 17:00", "", ""


def with_mistakes(lines: list[str]) -> list[str]:
    """What real files hold: unknown tables, texts over two lines, short rows, errors."""
    lines = [
        line.replace("Spools vorfertigen Reaktor", "Spools vorfertigen\nReaktor (1.4571)")
        for line in lines
    ]
    end = lines.index("%T\tTASKPRED")
    double = next(line for line in lines if "A30-RFC-0130" in line).split("\t")
    double[1], double[10] = "999001", "Übergabe, doppelt vergeben"
    lines.insert(end, "\t".join(double))
    wrong = next(n for n, line in enumerate(lines) if "A10-INS-0120" in line)
    fields = lines[wrong].split("\t")
    fields[13] = "neun Tage"
    lines[wrong] = "\t".join(fields)
    dangling = next(line for line in lines if line.startswith("%R\t107000")).split("\t")
    dangling[1], dangling[3] = "999002", "999003"
    lines.insert(lines.index("%T\tTASKRSRC"), "\t".join(dangling))
    lines[-1:-1] = ["%T\tZZ_ADDON", "%F\tid\ttext", "%R\t1\tvon einem Zusatzprogramm"]
    start, end = lines.index("%T\tTASK"), lines.index("%T\tTASKPRED")
    return [line.rstrip("\t") if start < place < end else line for place, line in enumerate(lines)]


def write(name: str, lines: list[str], encoding: str, line_end: str = "\r\n") -> None:
    text = "".join(line + line_end for line in lines)
    (FOLDER / name).write_bytes(text.encode(encoding))


def main() -> None:
    unit = piping("UNIT100", "Unit 100, Rohrleitungsbau", datetime(2025, 4, 1), 100_000, UNIT_AREAS)
    write("unit100.xer", with_mistakes(xer([unit])), "cp1252")
    write("unit100-update.xer", xer([updated(unit)]), "cp1252")

    inside = piping("OSBL-PIPE", "Rohrbrücke", datetime(2025, 4, 1), 200_000, ("A10",))
    outside = piping("ISBL-PIPE", "Anlagenverrohrung", datetime(2025, 4, 15), 300_000, ("A20",))
    lines = xer([inside, outside])
    tie = ("%R", 399_999, outside.id("task", "A20-HYD-0100"), inside.id("task", "A10-RFC-0130"))
    owners = (outside.id("project", outside.code), inside.id("project", inside.code))
    place = lines.index("%T\tTASKRSRC")
    lines.insert(place, "\t".join(map(str, (*tie, *owners, "PR_FS", 80))))
    write("two-projects.xer", lines, "cp1252")

    tanks = piping("TANKFARM", "Tanklager, Füllleitungen", datetime(2025, 4, 8), 500, TANK_AREAS)
    for activity in tanks.activities:
        activity.done = 100 if activity.finish <= tanks.data_date else 0
    write("tankfarm.xml", pmxml(tanks), "utf-8", "\n")


if __name__ == "__main__":
    main()
