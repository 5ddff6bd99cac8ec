"""Files of every format docflow knows, and the report of what did not go in."""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from adapters.ports.columns import ColumnSource
from domain.imports.schedule_items import ScheduleItem, ScheduleProject
from domain.tabular.rows import Cell, Merge, RejectedRow, SheetFacts, SkippedTable


class TableSource(Protocol):
    """One table of a file."""

    format: str
    """`csv`, `xlsx`, `xls` or `ods`."""
    sheet: str | None
    encoding: str | None
    delimiter: str | None
    """Of a text table."""
    columns: ColumnSource | None
    """Reads a text table by columns; None: it is read row by row only."""
    date1904: bool
    """Serial day numbers count from 1904."""
    merges: list[Merge]
    """Merged cells of a worksheet, complete when its rows have been read."""
    widths: dict[int, int]
    """Of a text table: line number to the number of fields of its first records, empty ones
    included."""
    hidden_columns: set[int]
    """Positions of columns that the user's program does not show."""
    hidden_rows: "array[int]"
    """Line numbers, rising, of rows that hold anything and that the user's program does not show,
    as far as rows have been read."""
    is_hidden: bool
    """The user's program does not show the sheet."""

    def rows(self) -> Iterator[tuple[int, list[Cell]]]:
        """Rows that hold anything, each with its line number as the user's program shows it.

        Each call begins at the top; one reading at a time.

        Trailing empty cells are cut; memory stays bounded whatever the file.

        Raises:
            UnreadableDocument: The file turned out damaged or hostile on the way.
        """
        ...


class TableBook(Protocol):
    """A file with all of its tables."""

    @property
    def sheets(self) -> Sequence[SheetFacts]:
        """Worksheets in the file's order, hidden ones included; none for a text table."""
        ...

    def table(self, sheet: str | None = None) -> TableSource:
        """One of the sheets, by its exact name; the table itself where there are none."""
        ...


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


class Documents(Protocol):
    """Reads files of every format docflow knows."""

    def open_table(
        self,
        path: Path,
        *,
        filename: str | None = None,
        sheet: str | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
    ) -> AbstractContextManager[TableSource]:
        """Open a table by what the file holds; the name is a hint.

        Args:
            path: The file.
            filename: The name its owner knows it by.
            sheet: Sheet of a workbook; when absent the first that holds anything, a hidden one
                only where no visible one does.
            encoding: Encoding of a text file; found out when absent.
            delimiter: Between the fields of a text file; found out when absent.

        Raises:
            UnreadableDocument: No table can be read from it; the message says why.
        """
        ...

    def sheets(self, path: Path, *, filename: str | None = None) -> Sequence[str]:
        """Names of a workbook's sheets in its order; none for a text table.

        Raises:
            UnreadableDocument: No table can be read from it; the message says why.
        """
        ...

    def open_workbook(
        self, content: Path | bytes, *, filename: str | None = None, encoding: str | None = None
    ) -> AbstractContextManager[TableBook]:
        """Open a file with all of its tables, by what it holds; the name is a hint.

        Args:
            content: The file; its bytes, where it is no container.
            filename: The name its owner knows it by.
            encoding: Encoding of a text file; found out when absent.

        Raises:
            UnreadableDocument: No table can be read from it; the message says why.
        """
        ...

    def is_container(self, content: Path | bytes) -> bool:
        """Whether a file is a workbook or an archive, whose size hardly shows what it holds."""
        ...

    def open_schedule(
        self, path: Path, *, filename: str | None = None, encoding: str | None = None
    ) -> AbstractContextManager[ScheduleSource]:
        """Open an XER or PMXML file by what it holds.

        Raises:
            UnreadableDocument: It is neither, or damaged; the message says which.
        """
        ...


class ReportWriter(Protocol):
    """Writes the spreadsheet of rejected rows."""

    def write(
        self,
        target: Path,
        header: Sequence[str],
        rows: Iterator[RejectedRow],
        *,
        comments: bool = False,
        memory: Sequence[Sequence[str]] = (),
        left_out: Sequence[SkippedTable] = (),
    ) -> None:
        """The user's own rows plus a first column that says what is wrong with each.

        Formulas are written as text; memory stays bounded.

        Args:
            target: File to write.
            header: Titles of the columns.
            rows: The rows, with their problems.
            comments: Put each problem as a comment on the cell of its column as well, as far as
                memory allows.
            memory: Rows of a hidden sheet: what the report remembers.
            left_out: Rows of a sheet of its own: those that are no data, below the titles of
                their tables, each with the reason.
        """
        ...
