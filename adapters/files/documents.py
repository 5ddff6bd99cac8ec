"""The one place where activities find readers for files of every format."""

from contextlib import AbstractContextManager
from pathlib import Path

from adapters.files.schedules import open_schedule
from adapters.files.tables import open_table
from adapters.ports import ScheduleSource, TableSource


class FileDocuments:
    """Reads tables and schedules from local files; a `Documents`."""

    def open_table(
        self,
        path: Path,
        *,
        filename: str | None = None,
        sheet: str | None = None,
        encoding: str | None = None,
    ) -> AbstractContextManager[TableSource]:
        """Open a table by what the file holds."""
        return open_table(path, filename=filename, sheet=sheet, encoding=encoding)

    def open_schedule(
        self, path: Path, *, filename: str | None = None, encoding: str | None = None
    ) -> AbstractContextManager[ScheduleSource]:
        """Open an XER or PMXML file by what it holds."""
        return open_schedule(path, filename=filename, encoding=encoding)
