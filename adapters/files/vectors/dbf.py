"""Attributes of a Shapefile: dBASE tables, read to the byte.

Source: https://www.dbase.com/KnowledgeBase/int/db7_file_fmt.htm and the Shapefile specification
of ESRI (1998). GDAL recodes, cuts and rounds what does not fit, and says nothing.
"""

import codecs
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from math import isfinite
from pathlib import Path
from typing import Any, Final

import numpy as np

from adapters.files.vectors.layers import Refused, SourceField
from workflows.jobs.vectors import ColumnType, Encoding, FeatureProblem

_HEADER: Final = struct.Struct("<4xLHH17xB2x")
_FIELD: Final = struct.Struct("<11sc4xBB14x")
_FIELD_END: Final = b"\r"
_MOST_FIELDS: Final = 2_000
_LONGEST_NAME: Final = 10
_EXACT_DIGITS: Final = 15
_READ: Final = b"CNFLD"
_INT64: Final = range(-(1 << 63), 1 << 63)
_SHOWN: Final = 40

Rows = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class DbfField:
    """One field, as the header describes it."""

    name: bytes
    kind: bytes
    width: int
    decimals: int


@dataclass(slots=True)
class Attributes:
    """What the table holds."""

    fields: list[SourceField] = field(default_factory=list[SourceField])
    values: list[Sequence[Any]] = field(default_factory=list[Sequence[Any]])
    problems: list[FeatureProblem] = field(default_factory=list[FeatureProblem])
    notes: list[str] = field(default_factory=list[str])
    deleted: Rows = field(default_factory=lambda: np.zeros(0, bool))
    """Which rows are marked as deleted."""


@dataclass(frozen=True, slots=True)
class Dbf:
    """A table whose header has been read."""

    path: Path
    records: int
    start: int
    length: int
    """Bytes of a record."""
    language: int
    fields: Sequence[DbfField]

    def rows(self) -> Rows:
        """The records, one byte string a field."""
        kinds = [("deleted", "S1")]
        kinds += [(f"f{number}", f"S{each.width}") for number, each in enumerate(self.fields)]
        with self.path.open("rb") as file:
            file.seek(self.start)
            return np.frombuffer(file.read(self.records * self.length), np.dtype(kinds))


def open_dbf(path: Path) -> Dbf:
    """Read a header.

    Raises:
        Refused: It is damaged, or the table is cut off.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_HEADER.size)
        if len(head) < _HEADER.size:
            raise Refused("the .dbf is cut off in its header; save the Shapefile again")
        records, start, length, language = _HEADER.unpack(head)
        described = file.read(max(start - _HEADER.size, 0))
    fields = list(_fields(described, has_long_text=True))
    if 1 + sum(each.width for each in fields) != length:
        fields = list(_fields(described, has_long_text=False))
    if 1 + sum(each.width for each in fields) != length or any(not f.width for f in fields):
        raise Refused("the .dbf contradicts itself about its fields; save the Shapefile again")
    if size < start + records * length:
        there = max(size - start, 0) // length
        raise Refused(f"the .dbf is cut off: it holds {there:,} of its {records:,} records")
    return Dbf(path, records, start, length, language, fields)


def _fields(header: bytes, has_long_text: bool) -> Iterator[DbfField]:
    """What a header describes.

    Args:
        header: After its first part.
        has_long_text: The decimals of a text are the high byte of its width, as some programs
            write it; others write there what means nothing.
    """
    for offset in range(0, min(len(header), _MOST_FIELDS * _FIELD.size), _FIELD.size):
        if header[offset : offset + 1] == _FIELD_END or len(header) < offset + _FIELD.size:
            return
        name, kind, width, decimals = _FIELD.unpack_from(header, offset)
        if kind == b"C":
            width, decimals = width + (decimals << 8 if has_long_text else 0), 0
        yield DbfField(name.partition(b"\0")[0], kind.upper(), width, decimals)


def undecided_text(dbf: Dbf) -> tuple[str, int, bytes] | None:
    """A text beyond ASCII, with its field and row: what an encoding is needed for; or None."""
    for each in dbf.fields:
        if not each.name.isascii():
            return "names of fields", 0, each.name
    rows = dbf.rows()
    for number, each in enumerate(dbf.fields):
        if each.kind != b"C":
            continue
        column = rows[f"f{number}"]
        raw = np.ascontiguousarray(column).view(np.uint8).reshape(len(column), -1)
        beyond = np.flatnonzero((raw >= 0x80).any(axis=1))
        if len(beyond):
            row = int(beyond[0])
            return each.name.decode("ascii"), row + 1, bytes(column[row]).strip()
    return None


def is_all_utf8(dbf: Dbf) -> bool:
    """Whether there are texts beyond ASCII, and every one of them is valid UTF-8.

    Texts of another encoding hardly ever are.
    """
    is_beyond = False
    rows = dbf.rows()
    for number, each in enumerate(dbf.fields):
        if each.kind != b"C":
            continue
        for value in rows[f"f{number}"].tolist():
            if value.isascii():
                continue
            is_beyond = True
            try:
                # The width of the field may have cut the last character off.
                text = codecs.getincrementaldecoder("utf-8")().decode(value)
            except UnicodeDecodeError:
                return False
            if text.isascii():
                return False
    return is_beyond


def read_attributes(dbf: Dbf, encoding: Encoding) -> Attributes:
    """Read all fields.

    An invalid byte of a text, and a number or date that is none, are problems of their row and
    field. A row that is marked as deleted is distinguished.
    """
    rows = dbf.rows()
    found = Attributes(deleted=rows["deleted"] == b"*")
    for number, each in enumerate(dbf.fields):
        name = each.name.decode(encoding.codec, errors="replace").strip() or f"field_{number + 1}"
        if each.kind not in _READ:
            kind = each.kind.decode("latin-1")
            found.notes.append(f"field {name!r} is of the type {kind!r} and is left out")
            continue
        if len(each.name) == _LONGEST_NAME:
            found.notes.append(
                f"the name of field {name!r} fills the ten bytes of the format: it may be cut"
            )
        column = _Column(name, each, encoding.codec, found)
        column.read([value.strip(b" \0") for value in rows[f"f{number}"].tolist()])
    return found


class _Column:
    """One field, as it is read."""

    def __init__(self, name: str, spec: DbfField, codec: str, found: Attributes) -> None:
        self._name = name
        self._spec = spec
        self._codec = codec
        self._found = found
        self._cut = 0

    def read(self, raw: Sequence[bytes]) -> None:
        """Add the field and its values."""
        match self._spec.kind:
            case b"C":
                kind, values = ColumnType.TEXT, self._each(raw, self._text)
            case b"L":
                kind, values = ColumnType.BOOLEAN, self._each(raw, _logical)
            case b"D":
                kind, values = ColumnType.DATE, self._each(raw, _date)
            case _:
                kind, values = self._numbers(raw)
        if self._cut:
            self._found.notes.append(
                f"{self._cut:,} texts of field {self._name!r} end within a character, which the"
                " width of the field has cut off; that character is left out"
            )
        is_empty = all(value is None for value in values)
        self._found.fields.append(SourceField(self._name, kind, is_empty))
        self._found.values.append(values)

    def _each(self, raw: Sequence[bytes], read: Callable[[bytes], Any]) -> list[Any]:
        values: list[Any] = []
        for row, value in enumerate(raw, start=1):
            try:
                values.append(read(value) if value else None)
            except UnicodeDecodeError as error:
                values.append(None)
                byte = value[error.start]
                self._problem(
                    row,
                    f"byte 0x{byte:02x} at place {error.start + 1} is not valid in {self._codec}",
                    is_rejected=True,
                )
            except (ValueError, InvalidOperation):
                values.append(None)
                shown = value[:_SHOWN].decode("ascii", errors="backslashreplace")
                self._problem(row, f"{shown!r} is not a {_EXPECTED[self._spec.kind]}; left empty")
        return values

    def _text(self, value: bytes) -> str:
        try:
            return value.decode(self._codec)
        except UnicodeDecodeError as error:
            is_cut = error.end == len(value) and "unexpected end" in error.reason
            if not is_cut and not (error.reason == "incomplete multibyte sequence"):
                raise
            self._cut += 1
            return value[: error.start].decode(self._codec)

    def _numbers(self, raw: Sequence[bytes]) -> tuple[ColumnType, list[Any]]:
        overflown = sum(value.startswith(b"*") for value in raw)
        if overflown:
            self._found.notes.append(
                f"{overflown:,} values of field {self._name!r} are asterisks, a number that did"
                " not fit when the file was written; they are left empty"
            )
            raw = [b"" if value.startswith(b"*") else value for value in raw]
        values = self._each(raw, _decimal)
        present = [value for value in values if value is not None]
        if self._spec.decimals == 0 and all(map(_is_whole, present)):
            return ColumnType.INTEGER, [None if v is None else int(v) for v in values]
        if self._spec.width <= _EXACT_DIGITS or all(map(_is_exact, present)):
            return ColumnType.REAL, [None if v is None else float(v) for v in values]
        self._found.notes.append(
            f"numbers of field {self._name!r} have more digits than 64 bits hold; kept as text"
        )
        return ColumnType.TEXT, [None if v is None else str(v) for v in values]

    def _problem(self, row: int, reason: str, *, is_rejected: bool = False) -> None:
        self._found.problems.append(
            FeatureProblem(feature=row, field=self._name, reason=reason, is_rejected=is_rejected)
        )


_EXPECTED: Final = {b"N": "number", b"F": "number", b"L": "logical value", b"D": "date"}


def _decimal(value: bytes) -> Decimal:
    found = Decimal(value.decode("ascii", errors="replace"))
    # Beyond what a real holds, and its digits would take hours.
    if b"_" in value or not isfinite(float(found)):
        raise ValueError
    return found


def _is_whole(value: Decimal) -> bool:
    return value == value.to_integral_value() and int(value) in _INT64


def _is_exact(value: Decimal) -> bool:
    return Decimal(repr(float(value))) == value


def _logical(value: bytes) -> bool | None:
    if value in b"TtYy":
        return True
    if value in b"FfNn":
        return False
    if value == b"?":
        return None
    raise ValueError


def _date(value: bytes) -> date | None:
    if not value.strip(b"0"):
        return None
    if len(value) != 8 or not value.isdigit():
        raise ValueError
    return date(int(value[:4]), int(value[4:6]), int(value[6:]))
