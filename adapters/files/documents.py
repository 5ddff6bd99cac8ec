"""The one place where activities find readers for files of every format."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from adapters.files.encodings import Content, opened
from adapters.files.formats import HEAD_BYTES, is_container
from adapters.files.schedules.primavera import open_schedule
from adapters.files.tables.custom import custom_format
from adapters.files.tables.source import open_table, open_workbook, sheets_of
from adapters.ports.documents import Book, ScheduleSource, Table


class FileDocuments:
    """Reads tables and schedules from local files."""

    def open_table(
        self,
        path: Path,
        *,
        filename: str | None = None,
        sheet: str | None = None,
        encoding: str | None = None,
        delimiter: str | None = None,
    ) -> AbstractContextManager[Table]:
        """Open a table by what the file holds."""
        return open_table(
            path, filename=filename, sheet=sheet, encoding=encoding, delimiter=delimiter
        )

    def sheets(self, path: Path, *, filename: str | None = None) -> Sequence[str]:
        """Names of a workbook's sheets in its order; none for a text table."""
        return sheets_of(path, filename=filename)

    def open_workbook(
        self, content: Content, *, filename: str | None = None, encoding: str | None = None
    ) -> AbstractContextManager[Book]:
        """Open a file with all of its tables, by what it holds."""
        return open_workbook(content, filename=filename, encoding=encoding)

    def is_container(self, content: Content, filename: str) -> bool:
        """Whether a file is a workbook or an archive, or a package reads it.

        Its size hardly shows what it holds.
        """
        if custom_format(filename) is not None:
            return True
        with opened(content) as file:
            return is_container(file.read(HEAD_BYTES))

    def open_schedule(
        self, path: Path, *, filename: str | None = None, encoding: str | None = None
    ) -> AbstractContextManager[ScheduleSource]:
        """Open an XER or PMXML file by what it holds."""
        return open_schedule(path, filename=filename, encoding=encoding)
