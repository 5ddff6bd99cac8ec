"""Schedules of Primavera: one source over both of its formats."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from adapters.files.compound import COMPOUND_HEAD
from adapters.files.formats import HEAD_BYTES, Format, format_by_head
from adapters.files.schedules.entities import read_entities, usable
from adapters.files.schedules.records import (
    ActivityRecord,
    ProjectRecord,
    Records,
    Values,
    WbsRecord,
    clean_code,
)
from adapters.files.schedules.source import open_pmxml, open_xer, xer_encoding
from adapters.ports.errors import UnreadableDocument
from workflows.imports.schedules import ScheduleItem, ScheduleProject

PROJECTS = 10_000
"""Projects of one file."""


@contextmanager
def open_schedule(
    path: Path, *, filename: str | None = None, encoding: str | None = None
) -> Generator["PrimaveraSource"]:
    """Open an XER or PMXML file by what it holds.

    Args:
        path: The file; its folder may be used for temporary files.
        filename: Its name, for messages.
        encoding: Code page of an XER file without a byte order mark; PMXML declares its own.

    Raises:
        UnreadableDocument: It is neither, or damaged; the message says which.
    """
    name = repr(filename) if filename else "the file"
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise UnreadableDocument(f"{name} is empty")
    marked = xer_encoding(head)
    if marked is not None:
        with open_xer(path, marked or encoding) as records:
            yield PrimaveraSource(records)
    elif _is_xml(head):
        with open_pmxml(path) as records:
            yield PrimaveraSource(records)
    else:
        raise UnreadableDocument(
            f"{name} is not a Primavera XER or PMXML file{_appearance(head)}; "
            "export it from Primavera"
        )


def _appearance(head: bytes) -> str:
    """What another file seems to be, for the message."""
    found = format_by_head(head)
    if found is Format.PLAIN:
        return ""
    if found is not None:
        return f"; it seems to be {found.value}"
    is_compound = head.startswith(COMPOUND_HEAD)
    container = "a Microsoft Project or old Office file" if is_compound else "a zip or Office file"
    return f"; it seems to be {container}"


def _is_xml(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        head = head.replace(b"\0", b"")[2:]
    return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")


class PrimaveraSource:
    """A Primavera file; a `ScheduleSource`.

    Attributes:
        format: `xer` or `pmxml`.
        guessed_encoding: Code page of an XER file, if it is a guess.
    """

    def __init__(self, records: Records) -> None:
        self.format = records.format
        self.guessed_encoding = records.guessed_encoding
        self._records = records
        self._projects: list[ProjectRecord] = []
        self._codes: dict[str, str] = {}
        for project in records.rows(ProjectRecord):
            code = clean_code(project.code) or clean_code(project.id)
            if not usable(code):
                raise UnreadableDocument(f"the project at line {project.line} has no usable id")
            if len(self._projects) >= PROJECTS:
                raise UnreadableDocument(f"the file holds more than {PROJECTS:,} projects")
            self._projects.append(project)
            self._codes[project.id] = code
        if not self._projects:
            raise UnreadableDocument("the file holds no project")

    def projects(self) -> list[ScheduleProject]:
        """The projects of the file with their data dates and numbers of activities."""
        names = {
            node.project: node.name
            for node in self._records.rows(WbsRecord)
            if node.top == "Y" and node.project in self._codes
        }
        activities: dict[str, int] = dict.fromkeys(self._codes, 0)
        for activity in self._records.rows(ActivityRecord):
            project = activity.project
            if not project and len(self._projects) == 1:
                project = self._projects[0].id
            if project in activities:
                activities[project] += 1
        return [
            self._describe(project, names.get(project.id, ""), activities[project.id])
            for project in self._projects
        ]

    def short_name(self, primavera_project_id: str) -> str:
        """Short name of a project of the file.

        Raises:
            UnreadableDocument: The file holds no such project.
        """
        return self._codes[self._find(primavera_project_id).id]

    def task_codes(self, primavera_project_id: str) -> Iterator[str]:
        """Usable task codes of a project, in the order of the file."""
        project = self._find(primavera_project_id).id
        for activity in self._records.rows(ActivityRecord):
            own = (project, "") if len(self._projects) == 1 else (project,)
            if activity.project in own and usable(code := clean_code(activity.code)):
                yield code

    def read(self, primavera_project_id: str) -> Iterator[ScheduleItem]:
        """Every entity with its line, and in between the rows and values that are left out.

        Raises:
            UnreadableDocument: The file is damaged, or holds no such project.
        """
        return read_entities(self._records, self._find(primavera_project_id), self._codes)

    def _find(self, wanted: str) -> ProjectRecord:
        by_code = (project for project in self._projects if self._codes[project.id] == wanted)
        by_id = (project for project in self._projects if project.id == wanted)
        found = next(by_code, None) or next(by_id, None)
        if found is None:
            names = [self._codes[project.id] for project in self._projects]
            more = f" and {len(names) - 20} more" if len(names) > 20 else ""
            raise UnreadableDocument(
                f"the file holds no project {wanted!r}; it holds {', '.join(names[:20])}{more}"
            )
        return found

    def _describe(self, record: ProjectRecord, top_name: str, activities: int) -> ScheduleProject:
        values, line = Values(), record.line
        return ScheduleProject(
            primavera_project_id=self._codes[record.id],
            object_id=record.id,
            name=values.text(line, "name", record.name or top_name),
            data_date=values.moment(line, "data_date", record.data_date),
            planned_start=values.moment(line, "planned_start", record.planned_start),
            finish=values.moment(line, "finish", record.finish or record.must_finish),
            activities=activities,
        )
