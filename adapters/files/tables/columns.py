"""Text tables as blocks of columns, read by DuckDB: nothing in Python is made of most cells.

Only the plainest of texts is read so: one line for each row, as many fields in each as the header
has. What was read is weighed against the bytes of the file, so that nothing that DuckDB would see
in another way than `csv` goes unnoticed.
"""

import os
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from domain.tabular.columns import CellForm, ColumnText, NotPlain
from domain.tabular.guards import MARKS

BLOCK_BYTES: Final = 11_000_000
"""Of a block; its columns and what is made of them take some five times as much."""
_LINE_BYTES: Final = 1_000_000
_BUFFER_BYTES: Final = 4 * _LINE_BYTES
_COLUMNS: Final = 200
_MEMORY: Final = "192MB"
_GLOB: Final = frozenset("*?[]{}")
_NO_NULL: Final = "\x01\x02"
"""Stands for NULL while a file is read: an empty field is an empty text."""
_FORMS: Final[Mapping[CellForm, str]] = {
    CellForm.TEXT: "{cell}",
    CellForm.DECIMAL: "CAST(TRY_CAST({cell} AS DECIMAL(20, 6)) AS VARCHAR)",
    CellForm.COMMA: (
        "CAST(TRY_CAST(replace(replace({cell}, '.', ''), ',', '.') AS DECIMAL(20, 6)) AS VARCHAR)"
    ),
    CellForm.INTEGER: "CAST(TRY_CAST({cell} AS BIGINT) AS VARCHAR)",
    CellForm.PADDED: "lpad(CAST(TRY_CAST({cell} AS BIGINT) AS VARCHAR), 10, '0')",
}
_READ: Final = """
CREATE OR REPLACE TABLE block AS SELECT * FROM read_csv(
  $path, auto_detect = false, columns = {columns}, delim = $delimiter, quote = '"', escape = '"',
  header = false, skip = 0, nullstr = $null, strict_mode = true, null_padding = false,
  ignore_errors = false, compression = 'none', encoding = 'utf-8', hive_partitioning = false,
  filename = false, max_line_size = {line}, buffer_size = {buffer}
)
"""
_SETTINGS: Final = (
    "SET allowed_paths = [{path}]",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class Session:
    """A database in memory that can read one file and nothing else.

    Args:
        readable: The file.

    Raises:
        NotPlain: DuckDB cannot be had.
    """

    def __init__(self, readable: Path) -> None:
        # Takes 40 MB and 0.1 s, which a worker that meets no large text does without.
        import duckdb

        self._error = duckdb.Error
        self._connection: Any = duckdb.connect(
            ":memory:",
            config={
                # The thread that asks does the work; another document has the other processor.
                "threads": 1,
                "memory_limit": _MEMORY,
                "temp_directory": "",
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "allow_community_extensions": False,
            },
        )
        for setting in _SETTINGS:
            self._connection.execute(setting.format(path=_quoted(str(readable))))

    def close(self) -> None:
        """Give the memory back."""
        self._connection.close()

    def fetch(self, sql: str, parameters: object = None) -> list[Any]:
        """All rows of a query.

        Raises:
            NotPlain: DuckDB refuses: malformed text, or more of it than memory is given.
        """
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except self._error as error:
            raise NotPlain from error

    def stream(self, sql: str, parameters: object, rows: int) -> Iterator[list[Any]]:
        """The rows of a query, so many at a time.

        Raises:
            NotPlain: See `fetch`.
        """
        try:
            result = self._connection.execute(sql, parameters)
            while part := result.fetchmany(rows):
                yield part
        except self._error as error:
            raise NotPlain from error


class Block:
    """The rows that the session holds; a `ColumnBlock`."""

    def __init__(self, session: Session, width: int, first_line: int, rows: int) -> None:
        self._session = session
        self._width = width
        self.first_line = first_line
        self.rows = rows
        self._joined: dict[int, str] = {}

    def top(self, rows: int) -> Sequence[tuple[str, ...]]:
        """The cells of the first rows."""
        return self._session.fetch("SELECT * FROM block LIMIT $1", [rows])

    def joined(self, position: int) -> str:
        """The distinct cells of a column, each behind a line break."""
        if position not in self._joined:
            # One text of all is made in a third of the time of as many texts; lines are rows, so
            # that no cell holds a line break.
            cells = f"SELECT DISTINCT c{position} AS c FROM block"  # noqa: S608
            sql = f"SELECT string_agg(chr(10) || c, '') FROM ({cells})"  # noqa: S608
            [(self._joined[position],)] = self._session.fetch(sql)
        return self._joined[position]

    def distinct(self, position: int) -> Sequence[str]:
        """The distinct cells of a column."""
        return self.joined(position)[1:].split("\n")

    def formed(self, position: int, form: CellForm) -> Sequence[tuple[str, str | None]]:
        """The distinct cells of a column, each with what is made of it; None: nothing can be."""
        text = _FORMS[form].format(cell=f"c{position}")
        return self._session.fetch(f"SELECT DISTINCT c{position}, {text} FROM block")  # noqa: S608

    def filled(self, position: int) -> int:
        """How many cells of a column are not empty."""
        joined = self.joined(position)
        if "\n\n" not in joined and not joined.endswith("\n"):
            return self.rows
        sql = f"SELECT count(*) FROM block WHERE c{position} <> ''"  # noqa: S608
        return self._session.fetch(sql)[0][0]

    def add_keys(self, key: Sequence[ColumnText]) -> bool:
        """Take the keys of the rows; whether none of them has come before, and none twice.

        Two keys of the same hash count as one: the rows are read one by one for nothing.
        """
        texts, values = _expressions(key)
        hashes = f"SELECT hash({', '.join(texts)}) AS h FROM block"  # noqa: S608
        self._session.fetch(f"CREATE OR REPLACE TEMPORARY TABLE own AS {hashes}", values)
        [(distinct,)] = self._session.fetch("SELECT count(DISTINCT h) FROM own")
        known = self._session.fetch("SELECT 1 FROM own JOIN keys USING (h) LIMIT 1")
        self._session.fetch("INSERT INTO keys SELECT h FROM own")
        return distinct == self.rows and not known

    def number(self, key: Sequence[ColumnText]) -> None:
        """Count, for each row, which occurrence of its key it is in this block."""
        texts, values = _expressions(key)
        number = f"row_number() OVER (PARTITION BY {', '.join(texts)} ORDER BY rowid)"
        numbered = f"SELECT *, {number} AS occurrence FROM block ORDER BY rowid"  # noqa: S608
        self._session.fetch(f"CREATE OR REPLACE TABLE block AS {numbered}", values)

    def lines(
        self, columns: Sequence[ColumnText], start: int, rows: int
    ) -> Iterator[Sequence[str]]:
        """Rows as lines of text from the row at `start` on, so many at a time."""
        self._joined.clear()
        texts, values = _expressions(columns)
        number = f"CAST(rowid + {self.first_line} AS VARCHAR)"
        line = ", chr(9), ".join((*texts, number))
        where = f" WHERE rowid >= {start}" if start else ""
        sql = f"SELECT concat({line}) FROM block{where}"  # noqa: S608
        for part in self._session.stream(sql, values, rows):
            yield [text for (text,) in part]

    def weigh(self, size: int, quotes: int) -> None:
        """Compare what was read with the bytes of the file.

        Args:
            size: Bytes without delimiters, line ends and quotes.
            quotes: How many quotes are among the bytes.

        Raises:
            NotPlain: A row, a field, a blank or a quote was read in another way than is known.
        """
        names = [f"c{position}" for position in range(self._width)]
        total = " + ".join(f"strlen({name})" for name in names)
        counts = ", ".join(f"count({name})" for name in names)
        [(rows, read, least, *texts)] = self._session.fetch(
            f"SELECT count(*), sum({total})::BIGINT, min({total}), {counts} FROM block"  # noqa: S608
        )
        # A row of empty cells is none where rows are read one by one.
        if rows != self.rows or not least or any(count != rows for count in texts):
            raise NotPlain
        inside = 0
        if quotes:
            held = [
                n for n, at in zip(names, range(self._width), strict=True) if '"' in self.joined(at)
            ]
            removed = " + ".join(f"strlen({n}) - strlen(replace({n}, '\"', ''))" for n in held)
            sql = f"SELECT sum({removed or '0'})::BIGINT FROM block"  # noqa: S608
            inside = self._session.fetch(sql)[0][0]
        # A quote within a value is written twice, so that those around values are an even number.
        around = quotes - 2 * inside
        if read - inside != size or around < 0 or around % 2:
            raise NotPlain

    def refuse_marks(self) -> None:
        """Text that was written around for spreadsheet programs is not what is shown.

        Raises:
            NotPlain: There is some.
        """
        for position in range(self._width):
            if any(f"\n{mark}" in self.joined(position) for mark in MARKS):
                raise NotPlain


class TextColumns:
    """A text in UTF-8 as blocks; a `ColumnBlocks`.

    Args:
        path: The file.
        delimiter: Between its fields.
        below: Lines above the first row.
        width: Fields of each row.
        marked: Some text may be written around for spreadsheet programs.
        session: Reads `copy`.
        copy: Gets the bytes of one block after the other.
    """

    def __init__(
        self,
        path: Path,
        delimiter: str,
        below: int,
        width: int,
        marked: bool,
        session: Session,
        copy: Path,
    ) -> None:
        self._path = path
        self._delimiter = delimiter
        self._below = below
        self._width = width
        self._marked = marked
        self._session = session
        self._copy = copy
        self._only: Block | None = None
        self.single = False

    def blocks(self) -> Iterator[Block]:
        """The blocks from the first on, one at a time."""
        self._session.fetch("CREATE OR REPLACE TABLE keys (h UBIGINT)")
        if self._only is not None:
            yield self._only
            return
        first_line = self._below + 1
        with self._path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for _ in range(self._below):
                if b"\r" in file.readline().removesuffix(b"\r\n"):
                    # It ends lines by itself.
                    raise NotPlain
            begin = first = file.tell()
            while data := file.read(BLOCK_BYTES):
                rest = file.readline()
                end = begin + len(data) + len(rest)
                if end == size and not (rest or data).endswith(b"\n"):
                    rest += b"\n"
                parts = [data, rest]
                del data, rest
                block = self._block(parts, first_line)
                self.single = begin == first and end == size
                begin = end
                first_line += block.rows
                if self.single:
                    self._only = block
                yield block

    def _block(self, parts: list[bytes], first_line: int) -> Block:
        """The rows of a stretch of the file, whose bytes are taken from `parts`."""
        rows, ends, pairs, quotes = (
            sum(part.count(mark) for part in parts) for mark in (b"\n", b"\r", b"\r\n", b'"')
        )
        if ends not in (0, rows) or ends != pairs:
            raise NotPlain
        size = sum(map(len, parts)) - rows * self._width - ends - quotes
        with self._copy.open("wb") as copy:
            copy.writelines(parts)
        parts.clear()
        columns = ", ".join(f"'c{position}': 'VARCHAR'" for position in range(self._width))
        self._session.fetch(
            _READ.format(columns=f"{{{columns}}}", line=_LINE_BYTES, buffer=_BUFFER_BYTES),
            {"path": str(self._copy), "delimiter": self._delimiter, "null": _NO_NULL},
        )
        block = Block(self._session, self._width, first_line, rows)
        block.weigh(size, quotes)
        if self._marked:
            block.refuse_marks()
        return block


@contextmanager
def open_columns(
    path: Path, delimiter: str, marked: bool, below: int, width: int, folder: Path
) -> Generator[TextColumns]:
    """Open a text in UTF-8 by columns.

    Args:
        path: The file.
        delimiter: Between its fields.
        marked: Some text may be written around for spreadsheet programs.
        below: Lines above the first row.
        width: Fields of each row.
        folder: Scratch folder of the step.

    Raises:
        NotPlain: The file is to be read row by row.
    """
    if not 0 < width <= _COLUMNS or not delimiter.isascii() or _GLOB & set(str(folder)):
        raise NotPlain
    with ExitStack() as held:
        handle, name = tempfile.mkstemp(prefix="block-", suffix=".csv", dir=folder)
        os.close(handle)
        copy = Path(name)
        held.callback(copy.unlink)
        session = Session(copy)
        held.callback(session.close)
        yield TextColumns(path, delimiter, below, width, marked, session, copy)


def _expressions(columns: Sequence[ColumnText]) -> tuple[list[str], dict[str, str]]:
    """The expression of each column, and the parameters of all."""
    texts: list[str] = []
    values: dict[str, str] = {}

    def parameter(value: str) -> str:
        name = f"value{len(values)}"
        values[name] = value
        return f"${name}"

    for column in columns:
        if column.numbered:
            texts.append("lpad(CAST(occurrence AS VARCHAR), 10, '0')")
        elif column.position is None:
            texts.append(parameter(column.constant))
        else:
            cell = f"c{column.position}"
            text = _FORMS[column.form].format(cell=cell)
            made = (
                f"WHEN {parameter(old)} THEN {parameter(new)}"
                for old, new in column.changed.items()
            )
            texts.append(
                f"CASE {cell} {' '.join(made)} ELSE {text} END" if column.changed else text
            )
    return texts, values


def _quoted(text: str) -> str:
    """A text as it stands in a statement."""
    return "'" + text.replace("'", "''") + "'"
