"""The piping jobs that the sample schedules plan."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

UNIT_AREAS = ("A10", "A20", "A30")
TANK_AREAS = ("T10", "T20")
AREAS = {
    "A10": "Kühlwasser",
    "A20": "Reaktor",
    "A30": "Kompressor",
    "T10": "Tank 1",
    "T20": "Tank 2",
}
STEPS = (
    # code, name, WBS, hours, crew, discipline
    ("ISO", "Isometrien freigeben", "ENG", 40, "ENGINEER", "Engineering"),
    ("MAT", "Rohrmaterial und Armaturen bestellen", "PRC", 160, "", "Procurement"),
    ("SPL", "Spools vorfertigen", "FAB", 120, "FITTER", "Piping"),
    ("NDT", "Schweißnähte prüfen (RT/PT)", "FAB", 40, "NDT-CREW", "Quality"),
    ("PNT", "Spools beschichten", "FAB", 48, "PAINTER", "Coating"),
    ("SUP", "Halterungen montieren", "ERE", 64, "FITTER", "Piping"),
    ("ERE", "Spools montieren", "ERE", 96, "FITTER", "Piping"),
    ("WLD", "Baustellennähte schweißen", "ERE", 80, "WELDER", "Piping"),
    ("VLV", "Armaturen einbauen", "ERE", 32, "FITTER", "Piping"),
    ("HYD", "Druckprobe", "TST", 24, "TEST-CREW", "Quality"),
    ("FLS", "Spülen und Trocknen", "TST", 16, "TEST-CREW", "Quality"),
    ("INS", "Dämmung", "TST", 72, "INSULATOR", "Insulation"),
    ("RFC", "Übergabe an Inbetriebnahme", "TST", 0, "", "Quality"),
)
PHASES = {
    "ENG": "Engineering",
    "PRC": "Beschaffung",
    "FAB": "Vorfertigung",
    "ERE": "Montage",
    "TST": "Prüfung und Übergabe",
}
RESOURCES = {
    "ENGINEER": ("Rohrleitungsplaner", "95"),
    "FITTER": ("Rohrschlosser", "62.50"),
    "WELDER": ("Schweißer WIG/E-Hand", "71"),
    "NDT-CREW": ("Prüfteam", "88"),
    "PAINTER": ("Beschichter", "58"),
    "TEST-CREW": ("Druckprobenteam", "80"),
    "INSULATOR": ("Isolierer", "59"),
}
ROLES = {"LEAD": "Obermonteur"}


@dataclass
class Activity:
    code: str
    name: str
    wbs: str
    hours: int
    start: datetime
    crew: str
    discipline: str
    kind: str = "TT_Task"
    calendar: str = "SITE"
    done: int = 0
    """Percent."""

    @property
    def finish(self) -> datetime:
        return self.start + timedelta(days=self.hours // 8)


@dataclass
class Project:
    code: str
    name: str
    data_date: datetime
    first_id: int
    """Ids differ from export to export."""
    areas: tuple[str, ...]
    activities: list[Activity] = field(default_factory=list)
    links: list[tuple[str, str, str, int]] = field(default_factory=list)

    def id(self, kind: str, code: str) -> int:
        kinds = ("project", "calendar", "wbs", "task", "resource", "role", "code", "link")
        catalogue = {
            "project": [self.code],
            "calendar": ["SITE", "OFFICE"],
            "wbs": [self.code, *self.wbs()],
            "task": [activity.code for activity in self.activities],
            "resource": list(RESOURCES),
            "role": list(ROLES),
            "code": ["Discipline", *sorted({step[5] for step in STEPS})],
        }
        return self.first_id + 1000 * kinds.index(kind) + catalogue[kind].index(code)

    def wbs(self) -> dict[str, str]:
        """Path below the top to name: phases, and areas within them."""
        nodes: dict[str, str] = {}
        for phase, name in PHASES.items():
            nodes[phase] = name
            nodes |= {f"{phase}.{area}": AREAS[area] for area in self.areas}
        return nodes


def piping(
    code: str, name: str, data_date: datetime, first_id: int, areas: tuple[str, ...]
) -> Project:
    project = Project(code, name, data_date, first_id, areas)
    begin = datetime(2025, 3, 3, 7)
    project.activities.append(
        Activity("PM-0000", "Auftrag erteilt", "ENG", 0, begin, "", "Engineering", "TT_Mile")
    )
    for number, area in enumerate(areas, 1):
        start, previous = begin + timedelta(days=14 * (number - 1)), "PM-0000"
        for place, (step, title, phase, hours, crew, discipline) in enumerate(STEPS, 1):
            activity = Activity(
                f"{area}-{step}-{place * 10:04}",
                f"{title} {AREAS[area]}",
                f"{phase}.{area}",
                hours,
                start,
                crew,
                discipline,
                kind="TT_FinMile" if hours == 0 else "TT_Task",
                calendar="OFFICE" if phase in ("ENG", "PRC") else "SITE",
            )
            project.activities.append(activity)
            project.links.append((previous, activity.code, "PR_FS", 16 if step == "PNT" else 0))
            start, previous = activity.finish, activity.code
        project.links.append((f"{area}-SPL-0030", f"{area}-SUP-0060", "PR_SS", 40))
        project.links.append((f"{area}-ERE-0070", f"{area}-WLD-0080", "PR_FF", -8))
    return project


def updated(project: Project) -> Project:
    """A month later: the first area is under way, its insulation was struck out."""
    later = piping(project.code, project.name, datetime(2025, 5, 1), 640_000, project.areas)
    later.activities = [a for a in later.activities if a.code != "A10-INS-0120"]
    later.links = [link for link in later.links if "A10-INS-0120" not in link]
    later.links.append(("A10-FLS-0110", "A10-RFC-0130", "PR_FS", 0))
    for activity in later.activities:
        if activity.finish <= later.data_date:
            activity.done = 100
        elif activity.start < later.data_date:
            activity.done = 50
        else:
            activity.start += timedelta(days=7)
    extra = Activity(
        "A20-CHM-0095",
        "Beizen und Passivieren Reaktor",
        "ERE.A20",
        32,
        datetime(2025, 8, 18, 7),
        "TEST-CREW",
        "Quality",
    )
    later.activities.append(extra)
    later.links.append(("A20-WLD-0080", extra.code, "PR_FS", 0))
    return later
