"""Schedules: their projects and entities as readers deliver them, cut into chunks."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, overload

from workflows.imports.runs import PROBLEMS_IN_RESULT, RowChunk
from workflows.shared.cells import Cell, KeyOccurrences, RejectedRow
from workflows.shared.contracts import Problem

SAME_SHARE: Final = 0.8
"""A file whose activities stand in a schedule to this share may be an update of it."""
CHOICES: Final = 3
"""Schedules that a person is asked about; a new one is the fourth answer."""


@dataclass(frozen=True, slots=True)
class ScheduleMatch:
    """A schedule that holds most activities of a file."""

    schedule_id: str
    share: float
    """Of the file's task codes, 0 to 1."""


def resembling(held: Mapping[str, int], total: int) -> list[ScheduleMatch]:
    """Schedules that a file may be an update of, the most similar first.

    Args:
        held: How many of the file's task codes each schedule holds.
        total: How many the file has.
    """
    shares = [ScheduleMatch(id, count / total) for id, count in held.items() if total]
    alike = [each for each in shares if each.share >= SAME_SHARE]
    return sorted(alike, key=lambda each: (-each.share, each.schedule_id))[:CHOICES]


@dataclass(frozen=True, slots=True)
class ScheduleProject:
    """One project of a schedule file."""

    primavera_project_id: str
    """Its short name, which planners may change from update to update."""
    object_id: str
    name: str | None
    data_date: datetime | None
    planned_start: datetime | None
    finish: datetime | None
    activities: int


ScheduleItem = tuple[int, str, dict[str, Any]] | RejectedRow | Problem
"""What a schedule holds, item by item.

An entity: line, table, and the values of its key and columns. A row that is left out: its cells
are the table, the line, and each value after its name. A value that was emptied or cut, right
behind its entity, which is still loaded.
"""


CHUNK_ROWS: Final = 2_000
"""Reading so many takes some 50 ms, during which no other thread of the worker runs freely."""

KEYS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "schedule_projects": (),
        "schedule_calendars": ("code",),
        "schedule_wbs": ("wbs_code",),
        "schedule_resources": ("resource_code",),
        "schedule_activities": ("task_code",),
        "schedule_relationships": (
            *("predecessor_code", "successor_code", "type"),
            *("predecessor_project", "successor_project"),
        ),
        "schedule_assignments": ("task_code", "resource_code", "role", "sequence"),
        "schedule_activity_codes": ("task_code", "code_type"),
        "schedule_udf_values": ("entity", "entity_code", "udf"),
    }
)
"""What distinguishes the rows of a table within one Primavera project."""

_OTHER_SCHEDULES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"schedule_relationships": ("predecessor_project", "successor_project")}
)
"""Columns that hold the short name of another project of the file; '' stands for this one."""

Entity = tuple[int, str, dict[str, Any]]
"""Line, table, values."""


REPORT_HEADER: Final = ("table", "line", "values of the row")
"""Header of the report: the tables share no columns, so that each value stands by its name."""


class ScheduleChunks:
    """Cuts the entities of one project into chunks of one table each; a context manager.

    The same file gives the same rows in the same order, so the count of rows consumed, entities
    and left-out rows together, is a cursor that holds across attempts. A key that comes a second
    time is left out.

    What is wrong goes two ways. A left-out row travels in its chunk: the store keeps every one for
    the report and counts its problems in the progress mark. A remark (a value that was emptied or
    cut while its row goes in) stays here: the first few and their number, which are the same at
    every attempt, because each reads from the beginning.

    Args:
        items: What the source holds, from the beginning.
        project_id: Project of the message.
        schedule_id: Schedule that the rows become part of.
        names: Short names of the project's schedules, to their ids.
        new_occurrences: Makes the counter of one table's keys; closed with the table.
        resume_at: Cursor of an earlier attempt; one chunk ends exactly there.
        chunk_rows: Rows of a chunk at most.

    Attributes:
        cursor: Rows consumed.
        found: Entities by table, without those left out.
        remarks: The first few remarks, in the order of reading.
        remark_count: How many there were.
        data_date: Of the project, once its row is read.
    """

    def __init__(
        self,
        items: Iterator[ScheduleItem],
        project_id: str,
        schedule_id: str,
        names: Mapping[str, str],
        new_occurrences: Callable[[], KeyOccurrences],
        resume_at: int = 0,
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self.cursor = 0
        self.found: Counter[str] = Counter()
        self.remarks: list[Problem] = []
        self.remark_count = 0
        self.data_date: datetime | None = None
        self._items = items
        self._project_id = project_id
        self._schedule_id = schedule_id
        self._names = names
        self._resume_at = resume_at
        self._chunk_rows = chunk_rows
        self._table = ""
        self._columns: tuple[str, ...] = ()
        self._held: Entity | None = None
        self._new_occurrences = new_occurrences
        self._seen = new_occurrences()

    def close(self) -> None:
        """Give memory and disk back."""
        self._seen.close()

    def next(self) -> RowChunk | None:
        """The next chunk; None at the end.

        Raises:
            UnreadableDocument: The file turned out damaged or hostile.
        """
        entities: list[Entity] = []
        rejected: list[RejectedRow] = []
        limit = self._chunk_rows
        if self.cursor < self._resume_at:
            limit = min(limit, self._resume_at - self.cursor)
        while len(entities) + len(rejected) < limit:
            item = self._held or self._next_item()
            self._held = None
            if item is None:
                break
            if isinstance(item, Problem):
                self._remark(item)
            elif isinstance(item, RejectedRow):
                rejected.append(item)
            elif item[1] != self._table and (entities or rejected):
                self._held = item
                break
            else:
                self._turn_to(item)
                entities.append(item)
        if not entities and not rejected:
            return None
        return self._chunk(entities, rejected)

    def _next_item(self) -> ScheduleItem | None:
        """The next item, an entity as part of its schedule; None at the end."""
        item = next(self._items, None)
        if item is None or isinstance(item, Problem | RejectedRow):
            return item
        line, table, values = item
        own = {"schedule_id": self._schedule_id, **values}
        if table == "schedule_projects":
            self.data_date = values.get("data_date")
        else:
            del own["primavera_project_id"]
        for end in _OTHER_SCHEDULES.get(table, ()):
            own[end] = self._names.get(own[end], own[end])
        return line, table, own

    def _turn_to(self, entity: Entity) -> None:
        _, table, values = entity
        if table != self._table:
            self._table = table
            self._columns = ("project_id", *values)
            self._seen.close()
            self._seen = self._new_occurrences()

    def _chunk(self, entities: list[Entity], rejected: list[RejectedRow]) -> RowChunk:
        first = self.cursor + 1
        self.cursor += len(entities) + len(rejected)
        kept, repeated = self._split(entities, first)
        self.found[self._table] += len(kept)
        return RowChunk(
            table=self._table,
            columns=self._columns,
            rows=[(self._project_id, *values.values()) for _, _, values in kept],
            lines=[line for line, _, _ in kept],
            cells=_ReportCells(kept),
            rejected=[*rejected, *repeated],
            cursor=self.cursor,
        )

    def _split(self, entities: list[Entity], first: int) -> tuple[list[Entity], list[RejectedRow]]:
        """Those that come for the first time, and the others."""
        columns = KEYS[self._table]
        keys = ["\x1f".join(str(values[key]) for key in columns) for _, _, values in entities]
        # Numbers of entities and not lines, of which an XML file may have a single one.
        places = self._seen.add(keys, range(first, first + len(keys)))
        kept: list[Entity] = []
        repeated: list[RejectedRow] = []
        for entity, (occurrence, _) in zip(entities, places, strict=True):
            if occurrence == 1:
                kept.append(entity)
            else:
                repeated.append(_repeated(entity, columns))
        return kept, repeated

    def _remark(self, problem: Problem) -> None:
        self.remark_count += 1
        if len(self.remarks) < PROBLEMS_IN_RESULT:
            self.remarks.append(problem)


class _ReportCells(Sequence[Sequence[Cell]]):
    """Cells of entities for the report, made only for those that the store refuses."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._entities = entities

    def __len__(self) -> int:
        return len(self._entities)

    @overload
    def __getitem__(self, place: int) -> Sequence[Cell]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Sequence[Cell]]: ...
    def __getitem__(self, place: int | slice) -> Sequence[Cell] | Sequence[Sequence[Cell]]:
        if isinstance(place, slice):
            return _ReportCells(self._entities[place])
        return _report_cells(self._entities[place])


def _report_cells(entity: Entity) -> Sequence[Cell]:
    line, table, values = entity
    named = values.items()
    return (
        *(table, line),
        *(None if value in (None, "") else f"{name}: {value}" for name, value in named),
    )


def _repeated(entity: Entity, columns: Sequence[str]) -> RejectedRow:
    line, table, values = entity
    key = ", ".join(str(values[column]) for column in columns)
    return RejectedRow(
        line=line,
        cells=_report_cells(entity),
        problems=(
            Problem(
                line=line,
                column=", ".join(columns) or None,
                value=key[:200],
                reason=f"the file holds this key of {table} more than once; the first one counts",
            ),
        ),
    )
