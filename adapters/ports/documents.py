"""Files of every format that docflow reads, and what it writes of their rows."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from workflows.batches.loads import (
    DocumentState,
    LoadStep,
)
from workflows.batches.names import DocumentId
from workflows.imports.schedules import ScheduleItem, ScheduleProject
from workflows.shared.cells import Cell, Merge, SheetInfo
from workflows.shared.contracts import BlobRef

Row = tuple[int, list[Cell]]
"""Line number, from 1, and cells without trailing blanks."""


@dataclass(slots=True)
class Table:
    """One table of a file."""

    format: str
    """`csv`, `xlsx`, `xls` or `ods`, or the name of the reader of a package."""
    sheet: str | None
    encoding: str | None
    _rows: Callable[[], Iterator[Row]]
    delimiter: str | None = None
    """Of a text table."""
    columns: Callable[[int, int, Path], AbstractContextManager[Any]] | None = None
    """Opens a text table by columns, given the lines above its first row, its width and a scratch
    folder, or raises `NotPlain`; None: it is read row by row only."""
    date1904: bool = False
    """Serial day numbers count from 1904."""
    merges: list[Merge] = field(default_factory=list[Merge])
    """Merged cells of a worksheet, complete when its rows have been read."""
    widths: dict[int, int] = field(default_factory=dict[int, int])
    """Of a text table: line number to the number of fields of its first records, empty ones
    included."""
    hidden_columns: set[int] = field(default_factory=set[int])
    """Positions of columns that the user's program does not show."""
    hidden_rows: "array[int]" = field(default_factory=lambda: array("I"))
    """Line numbers, rising, of rows that hold anything and that the user's program does not show,
    as far as rows have been read."""
    is_hidden: bool = False
    """The user's program does not show the sheet."""

    def rows(self) -> Iterator[Row]:
        """Rows that hold anything, each with its line number as the user's program shows it.

        Each call begins at the top; one reading at a time.

        Trailing empty cells are cut; memory stays bounded whatever the file.

        Raises:
            UnreadableDocument: The file turned out damaged or hostile on the way.
        """
        self.merges.clear()
        self.widths.clear()
        self.hidden_columns.clear()
        del self.hidden_rows[:]
        return self._rows()


@dataclass(frozen=True, slots=True)
class Book:
    """A file with all of its tables."""

    sheets: Sequence[SheetInfo]
    """Worksheets in the file's order, hidden ones included; none for a text table."""
    _table: Callable[[str], Table]

    def table(self, sheet: str | None = None) -> Table:
        """One of the sheets, by its exact name; the table itself where there are none."""
        return self._table(sheet or "")


class ScheduleSource(Protocol):
    """A Primavera file."""

    format: str
    """`xer` or `pmxml`."""
    guessed_encoding: str | None
    """Code page of an XER file, if neither the sender nor the file's bytes prove it."""

    def projects(self) -> list[ScheduleProject]:
        """The projects of the file.

        Raises:
            UnreadableDocument: The file is damaged or hostile.
        """
        ...

    def short_name(self, primavera_project_id: str) -> str:
        """Short name of a project, which may be named by its object id.

        Raises:
            UnreadableDocument: The file holds no such project.
        """
        ...

    def task_codes(self, primavera_project_id: str) -> Iterator[str]:
        """Task codes of one project, in the order of the file."""
        ...

    def read(self, primavera_project_id: str) -> Iterator[ScheduleItem]:
        """Everything the file holds about one project, by short name or object id.

        Yields:
            Entities, references resolved to codes, and in between the rows and values that are
            left out; the same items in the same order at every reading. The first is the
            project. Order of the tables: schedule_projects, schedule_calendars, schedule_wbs,
            schedule_resources, schedule_activities, schedule_relationships,
            schedule_assignments, schedule_activity_codes, schedule_udf_values.

        Raises:
            UnreadableDocument: The file is damaged or hostile, or holds no such project.
        """
        ...


@dataclass(frozen=True, slots=True)
class ExtractedFile:
    """A file that was inside another one."""

    filename: str
    """Safe to show and to use as the last segment of a blob name."""
    path: Path
    """In the folder that was given."""
    size: int
    """Bytes."""
    sha256: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read out of a document."""

    media_type: str
    """`application/pdf`, `message/rfc822`, ... by what the file holds."""
    text: str
    truncated: bool = False
    """The document has more text than is kept."""
    title: str | None = None
    author: str | None = None
    created_at: datetime | None = None
    """UTC; naive times of a file are taken as UTC."""
    modified_at: datetime | None = None
    pages: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    """All other metadata of the file, bounded."""
    thread: Sequence[str] = ()
    """Message ids of a mail: its own, then those that it answers."""
    files: Sequence[ExtractedFile] = ()
    notes: Sequence[str] = ()
    """What could not be read although the document as a whole could; never empty where the text
    is."""


@dataclass(frozen=True, slots=True)
class LoadInfo:
    """What the tables hold about a document."""

    state: DocumentState | None
    """None: not begun."""
    done: frozenset[LoadStep] = frozenset()
    """Checkpoints of this very message."""
    source: BlobRef | None = None
    duplicate_of: DocumentId | None = None
    superseded: bool = False
    """The document is that of a later message."""
    etag: str | None = None
    """Of the file that was read for this very message; None: none was, or it is not known."""


class Superseded(Exception):
    """A later message of the document was loaded meanwhile; the file is stored as a version."""


@dataclass(frozen=True, slots=True)
class WholeDocument:
    """Everything about a document that is written at once."""

    source: BlobRef
    """With its sha256."""
    extracted: Extracted
    """It holds no files."""
    tags: Sequence[str]
    seen: LoadInfo
    """As they were before its file was read."""


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that belongs to a document, where it is now."""

    filename: str
    blob: BlobRef
