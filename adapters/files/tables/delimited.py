"""CSV and TSV: encoding and delimiter found out, records streamed, or read by columns.

Text tables as blocks of columns, read by DuckDB: nothing in Python is made of most cells.

Only the plainest of texts is read so: one line for each row, as many fields in each as the header
has. What was read is weighed against the bytes of the file, so that nothing that DuckDB would see
in another way than `csv` goes unnoticed.
"""

import codecs
import csv
import io
import os
import re
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain, count, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, Final, cast

from adapters.files import limits
from adapters.files.encodings import Content, find_encoding, opened
from adapters.ports.documents import Row, Table
from adapters.ports.errors import UnreadableDocument
from workflows.shared.cells import GUARD, MARKS, Cell, unescape_formula
from workflows.shared.packed_rows import CellForm, ColumnText, NotPlain

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
    """The rows that the session holds: one line each, as many cells in each as the header has.

    Every method raises `NotPlain` where the rows are to be read one by one.
    """

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
        """Rows as lines of text from the row at `start` on, so many at a time.

        Args:
            columns: What stands in each line between tabs; behind them the line's number.
            start: Index of the first row.
            rows: How many are given together.
        """
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
    """A text in UTF-8 as blocks.

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


_BLOCK = 1 << 20
_SAMPLE = 1 << 16
_BATCH = 1 << 16
_DELIMITERS = ",;\t|"
_NO_DELIMITERS = '"\r\n\0'
_FIRST_RECORDS = 64
"""Records whose number of fields is kept: the header is among them."""
_DELIMITERS_OF_ROWS = 2
_LETTERS_FOR_EACH = 3
"""Letters in UTF-8 for each byte that is not, in a text that is meant to be UTF-8."""
_UTF8 = frozenset({"utf-8", "utf-8-sig", "ascii"})
_LAST_FIELD = itemgetter(-1)
_TEXT_FORMULA = re.compile(r'="((?:[^"]|"")*)"')
_TOO_LONG = "field larger than field limit"
"""What the library says of a cell with too many characters."""
_NO_TEXT = (
    "the file holds NUL characters: it is not text, or is in an encoding that must be named;"
    " send a table as XLSX or CSV"
)


@contextmanager
def open_delimited(
    content: Content, encoding: str | None = None, delimiter: str | None = None
) -> Generator[Table]:
    """Open a text table. Empty fields come as empty strings.

    Args:
        content: The text.
        encoding: Its encoding; found out when absent: byte order mark, UTF-8 if all of the
            file is valid, else a guess from a sample, else cp1252.
        delimiter: What stands between fields; found out when absent: the `sep=` of the first
            line, else the one that fits a sample best.

    Raises:
        UnreadableDocument: It is not text, or not in the encoding asked for; or nothing can be
            delimited so.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in _NO_DELIMITERS):
        raise UnreadableDocument(
            f"{delimiter!r} cannot stand between fields; name one character, as ';' or a tab"
        )
    chosen = _known(encoding) if encoding else _find_encoding(content)
    has_marks = _check_text(content, chosen)
    with io.TextIOWrapper(opened(content), encoding=chosen, newline="") as file:
        sample = file.read(_SAMPLE)
        file.seek(0)
        names_delimiter = sample[:4].lower() == "sep=" and sample[5:6] in ("\r", "\n")
        if delimiter is None and names_delimiter:
            delimiter = sample[4]
        elif delimiter is None:
            delimiter = find_delimiter(sample, complete=len(sample) < _SAMPLE)

        def rows() -> Iterator[Row]:
            file.seek(0)
            records = _records(file, delimiter, int(names_delimiter), table.widths)
            return map(_as_shown, records) if has_marks else records

        columns = None
        if chosen in _UTF8 and isinstance(content, Path):
            columns = partial(open_columns, content, delimiter, has_marks)
        table = Table("csv", None, chosen, rows, delimiter, columns)
        yield table


def _records(
    file: io.TextIOBase, delimiter: str, skipped: int, widths: dict[int, int]
) -> Iterator[Row]:
    """Records with the physical line they start on.

    Args:
        file: Open at the first line.
        delimiter: Between fields.
        skipped: Lines at the beginning that are not records.
        widths: Filled with the number of fields of the first records, empty ones included.
    """
    # As long as every line is a record, nothing has to be known of each of them.
    start = 1
    while batch := file.readlines(_BATCH):
        records = _one_each_line(batch[skipped:], delimiter)
        if records is None:
            yield from _records_of_lines(file, batch, start, delimiter, skipped, widths)
            return
        start += skipped
        skipped = 0
        if _are_trimmed(records):
            first = records[: _FIRST_RECORDS - len(widths)]
            widths.update(zip(count(start), map(len, first), strict=False))
            yield from zip(count(start), cast("list[list[Cell]]", records), strict=False)
            start += len(records)
            continue
        for line, record in enumerate(records, start):
            if record:
                if len(widths) < _FIRST_RECORDS:
                    widths[line] = len(record)
                while record and not record[-1]:
                    record.pop()
                if record:
                    yield line, cast("list[Cell]", record)
        start += len(records)


def _are_trimmed(records: list[list[str]]) -> bool:
    """Whether every record has a last field that is not empty."""
    try:
        return all(map(_LAST_FIELD, records))
    except IndexError:  # an empty line
        return False


def _one_each_line(lines: list[str], delimiter: str) -> list[list[str]] | None:
    """Records of which each is a line of its own; None where there may be others, or a mistake."""
    try:
        records = list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error:
        return None
    if len(records) < len(lines) or max(map(len, records), default=0) > limits.COLUMNS:
        return None
    return records


def _records_of_lines(
    file: io.TextIOBase,
    first: list[str],
    start: int,
    delimiter: str,
    skipped: int,
    widths: dict[int, int],
) -> Iterator[Row]:
    """Records of any number of lines; see `_records`.

    Args:
        file: Open behind the first lines.
        first: The first lines.
        start: Number of the first of them.
        delimiter: Between fields.
        skipped: How many of them are not records.
        widths: See `_records`.
    """
    before = start - 1 + skipped
    start = 1 + before
    taken = before - skipped
    ended = False

    def batches() -> Iterator[list[str]]:
        nonlocal taken
        for batch in chain([first], iter(lambda: file.readlines(_BATCH), [])):
            taken += len(batch)
            if taken - start > limits.RECORD_LINES + len(batch):
                raise UnreadableDocument(
                    f"line {start:,}: the record does not end within"
                    f" {limits.RECORD_LINES:,} lines; look for a quote that is not closed"
                )
            yield batch

    def end() -> Iterator[str]:
        # Asked for after the last line: by a record that is still open, or to find none.
        nonlocal ended
        ended = True
        yield ""

    most = limits.COLUMNS
    lines = chain(islice(chain.from_iterable(batches()), skipped, None), end())
    # Not strict, the reader takes what follows a closing quote for a part of the value.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        for record in reader:
            if record:
                if reader.line_num + before > start:
                    _refuse_swallowed_rows(record, delimiter, start)
                if len(widths) < _FIRST_RECORDS:
                    widths[start] = len(record)
                while record and not record[-1]:
                    record.pop()
                if len(record) > most:
                    raise UnreadableDocument(
                        f"line {start:,} holds {len(record):,} fields; at most {most:,} are read"
                    )
                if record:
                    yield start, cast("list[Cell]", record)
            start = reader.line_num + 1 + before
    except csv.Error as error:
        if ended:
            raise UnreadableDocument(
                f"line {start:,}: a quote is opened and never closed, so that the rows"
                " below it cannot be distinguished; close or remove it"
            ) from error
        if str(error).startswith(_TOO_LONG):
            raise UnreadableDocument(
                f"line {start:,}: a cell of the row that begins here has more than "
                f"{csv.field_size_limit():,} characters. If a quote opens it and is not closed, "
                "close or remove the quote; else the cell is too long: shorten it"
            ) from error
        raise UnreadableDocument(
            f"line {start:,}: {error}; look for a quote that is not closed"
        ) from error


def _refuse_swallowed_rows(record: list[str], delimiter: str, line: int) -> None:
    """A quote that begins a value and another one lines below make one value of whole rows.

    A value may hold line breaks; but where each line of a record has as many delimiters as the
    record itself, the quotes are part of the values: inches, say. A delimiter before a blank is
    one of a sentence, and with two columns nothing is certain.

    Raises:
        UnreadableDocument: They are.
    """
    delimiters = len(record) - 1
    lines = delimiter.join(record).splitlines()
    found = [each.count(delimiter) - each.count(f"{delimiter} ") for each in lines]
    if delimiters >= _DELIMITERS_OF_ROWS and set(found) == {delimiters}:
        raise UnreadableDocument(
            f"line {line:,}: a quote makes one value of {len(lines)} lines that are rows of their"
            " own; remove it, or double it within a quoted value"
        )


def find_delimiter(sample: str, *, complete: bool) -> str:
    """The delimiter that cuts most records of a sample into the same number of fields.

    Args:
        sample: The beginning of a file.
        complete: Whether it is all of the file; else its last record is not counted.
    """

    present = [delimiter for delimiter in _DELIMITERS if delimiter in sample]
    if len(present) < 2:
        return present[0] if present else _DELIMITERS[0]

    def score(delimiter: str) -> tuple[float, int]:
        try:
            records = list(csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter))
        except csv.Error:
            return 0.0, 0
        if not complete and len(records) > 1:
            records.pop()
        widths = Counter(len(record) for record in records if record)
        width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1]), default=(1, 0))
        return (count / widths.total(), width) if width > 1 else (0.0, 1)

    return max(present, key=score)


def _known(encoding: str) -> str:
    try:
        info = codecs.lookup(encoding)
    except LookupError as error:
        raise UnreadableDocument(f"there is no text encoding {encoding!r}") from error
    if not getattr(info, "_is_text_encoding", True):
        raise UnreadableDocument(f"{encoding!r} is not a text encoding")
    return "utf-8-sig" if info.name == "utf-8" else info.name


def _find_encoding(content: Content) -> str:
    encoding = find_encoding(content)
    if encoding is None:
        raise UnreadableDocument(_NO_TEXT)
    if not encoding.startswith("utf"):
        _refuse_nearly_utf8(content)
    return encoding


def _refuse_nearly_utf8(content: Content) -> None:
    """A text in UTF-8 into which some bytes of another encoding were put is read in neither.

    Raises:
        UnreadableDocument: The file is one.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    letters = strange = 0
    first_line = line = 1
    with opened(content) as file:
        for block in chain(iter(lambda: file.read(_BLOCK), b""), [b""]):
            text = decoder.decode(block, final=not block)
            valid = text.encode("utf-8", "ignore").decode("utf-8")
            letters += len(valid) - len(valid.encode("ascii", "ignore"))
            if len(valid) < len(text) and not strange:
                first_line = line + text[: _first_strange(text)].count("\n")
            strange += len(text) - len(valid)
            line += text.count("\n")
    if letters >= _LETTERS_FOR_EACH * strange:
        raise UnreadableDocument(
            "the file is in UTF-8 except for bytes of another encoding, the first on line"
            f" {first_line:,}; correct them, or name the encoding of the file"
        )


def _first_strange(text: str) -> int:
    return next(i for i, letter in enumerate(text) if "\ud800" <= letter <= "\udfff")


def _as_shown(row: Row) -> Row:
    """Cells without what was written around them for spreadsheet programs.

    An export guards text against being run as a formula; `="00123"` makes such a program show a
    text that it would take for a number.
    """
    line, cells = row
    return line, [
        _text_shown(cell) if isinstance(cell, str) and cell.startswith(MARKS) else cell
        for cell in cells
    ]


def _text_shown(cell: str) -> str:
    if (formula := _TEXT_FORMULA.fullmatch(cell)) is not None:
        return formula[1].replace('""', '"')
    return unescape_formula(cell)


def _check_text(content: Content, encoding: str) -> bool:
    """Read the file once: all of it decodes, no NUL, no endless line.

    What follows may then use the plain reader at full speed.

    Returns:
        Whether any text may be written around for spreadsheet programs (`_as_shown`).
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    position = run = 0
    has_marks = False
    with opened(content) as file:
        while True:
            block = file.read(_BLOCK)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:
                raise UnreadableDocument(
                    f"the file is not in {encoding}: bytes after position {position:,}"
                    " are not valid in it; name its encoding"
                ) from error
            if "\0" in text:
                raise UnreadableDocument(_NO_TEXT)
            has_marks = has_marks or GUARD in text or "=" in text
            run = _end_run(text, run)
            if run > limits.LINE_BYTES:
                raise UnreadableDocument(
                    f"the file holds a line of more than {limits.LINE_BYTES:,} characters;"
                    " it is not a table"
                )
            if not block:
                return has_marks
            position += len(block)


def _end_run(text: str, run: int) -> int:
    """Characters since the last line break."""
    last = max(text.rfind("\n"), text.rfind("\r"))
    return run + len(text) if last < 0 else len(text) - last - 1
