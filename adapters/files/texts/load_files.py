"""Load files of Concordance (DAT): rows of documents with what is known of each.

A field stands between thorns, fields are parted by the control character 20, and a registered sign
stands for a line break within a field.
"""

import csv
import io
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapters.files import limits
from adapters.files.texts.findings import Findings

_QUOTE, _BETWEEN, _LINE_BREAK = "\u00fe", "\x14", "\u00ae"
_BETWEEN_FIELDS: Final = f"{_QUOTE}{_BETWEEN}{_QUOTE}"
_ENCODINGS: Final = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252")
"""In this order: what is valid in one of them begins otherwise in the others."""
_HEAD: Final = 1 << 16


def load_file_encoding(head: bytes) -> str | None:
    """The encoding of a load file, by its first bytes; None: it is none."""
    for encoding in _ENCODINGS:
        if encoding == "utf-16" and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
            continue
        first = head.decode(encoding, "ignore").split("\n", 1)[0]
        if first.startswith(_QUOTE) and _BETWEEN_FIELDS in first:
            return encoding
    return None


def read_load_file(path: Path, into: Findings) -> None:
    """Read each row as lines of field and value, under the names of the first row."""
    with path.open("rb") as file:
        encoding = load_file_encoding(file.read(_HEAD)) or "cp1252"
    into.describe("encoding", encoding)
    damaged = rows = 0
    csv.field_size_limit(limits.TEXT_BYTES)
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        reader = csv.reader(file, delimiter=_BETWEEN, quotechar=_QUOTE)
        names = next(reader, list[str]())
        for row in reader:
            if into.is_late or into.is_cut_off:
                into.cut_off(f"only the first {rows:,} rows were read")
                break
            if not row:
                continue
            rows += 1
            damaged += len(row) != len(names)
            into.add_text(_shown(names, row))
    into.describe("rows", str(rows))
    if damaged:
        into.note(f"rows with more or fewer fields than the first: {damaged:,} of {rows:,}")


def _shown(names: Sequence[str], row: Sequence[str]) -> str:
    shown = io.StringIO()
    for number, (name, value) in enumerate(itertools.zip_longest(names, row, fillvalue=""), 1):
        if value:
            shown.write(f"{name or f'field {number}'}: {value.replace(_LINE_BREAK, chr(10))}\n")
    return f"{shown.getvalue()}\n"
