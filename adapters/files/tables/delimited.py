"""CSV and TSV: encoding and delimiter found out, records streamed."""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, count, islice
from operator import itemgetter
from pathlib import Path
from typing import cast

from adapters.files import limits
from adapters.files.contents import Content, opened
from adapters.files.encodings import find_encoding
from adapters.files.tables.columns import open_columns
from adapters.files.tables.table import Row, Table
from adapters.ports import UnreadableDocument
from domain.tabular.guards import GUARD, MARKS, unguarded
from domain.tabular.rows import Cell

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
    return unguarded(cell)


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
