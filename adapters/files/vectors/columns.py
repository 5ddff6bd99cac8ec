"""Columns of Arrow as libraries read them, in the types that tables have."""

import json
from collections.abc import Callable, Mapping
from datetime import date
from types import MappingProxyType
from typing import Any, Final, cast

import numpy as np
from arro3.core import Array, DataType

from adapters.files.vectors.layers import NUL, SourceField, array_of, arrow_type
from workflows.jobs.vectors import ColumnType, FeatureProblem, from_texts

_TEXTS: Final = (DataType.is_string, DataType.is_large_string, DataType.is_string_view)
_DAYS: Final = range(date.min.toordinal(), date.max.toordinal() + 1)
_EPOCH: Final = date(1970, 1, 1).toordinal()
_NONE: Final[Mapping[int, str | None]] = MappingProxyType({})
_KINDS: Final = (
    (DataType.is_boolean, ColumnType.BOOLEAN),
    (DataType.is_integer, ColumnType.INTEGER),
    (DataType.is_floating, ColumnType.REAL),
    (DataType.is_date, ColumnType.DATE),
    (DataType.is_time, ColumnType.TIME),
    (DataType.is_binary, ColumnType.BINARY),
    (DataType.is_large_binary, ColumnType.BINARY),
    (DataType.is_binary_view, ColumnType.BINARY),
)


def kind_of(type: DataType) -> ColumnType:
    """The type of a table's column; lists and structures become JSON text."""
    if DataType.is_timestamp(type):
        return ColumnType.INSTANT if type.tz else ColumnType.TIMESTAMP
    return next((kind for is_kind, kind in _KINDS if is_kind(type)), ColumnType.TEXT)


def converted(
    column: Array,
    field: SourceField,
    numbers: np.ndarray[Any, Any],
    problems: list[FeatureProblem],
    others: Mapping[int, str | None] = _NONE,
) -> Array:
    """A column in the type of its field.

    Args:
        column: As a library has read it.
        field: Its name and type.
        numbers: Of its features.
        problems: Gets what no column can hold.
        others: What some places get instead of their values.
    """

    def problem(place: int, reason: str, *, is_rejected: bool = False) -> None:
        problems.append(
            FeatureProblem(
                feature=int(numbers[place]),
                field=field.name,
                reason=reason,
                is_rejected=is_rejected,
            )
        )

    kind = field.type
    if any(is_text(column.type) for is_text in _TEXTS):
        if kind is ColumnType.TEXT and not others and _is_sound(column):
            return column.cast(arrow_type(kind))
        texts = [others.get(place, text) for place, text in enumerate(texts_of(column, problem))]
        return array_of(kind, from_texts(kind, texts))
    if kind is ColumnType.TEXT:
        return array_of(kind, [_as_text(value) for value in column.to_pylist()])
    if kind is ColumnType.DATE:
        counted = cast(
            list[int | None], column.cast(DataType.date32()).cast(DataType.int32()).to_pylist()
        )
        days = [None if place in others else day for place, day in enumerate(counted)]
        for place, day in enumerate(days):
            if day is not None and day + _EPOCH not in _DAYS:
                days[place] = None
                problem(place, "its date lies before the year 1 or after 9999; left empty")
        return Array(days, type=DataType.int32()).cast(DataType.date32())
    found = column if column.type == arrow_type(kind) else column.cast(arrow_type(kind))
    if not others:
        return found
    values = cast(list[Any], found.to_pylist())
    return array_of(kind, [others.get(place, value) for place, value in enumerate(values)])


def _is_sound(column: Array) -> bool:
    """Whether all texts of a column can be stored as they are."""
    raw = cast(list[bytes | None], column.cast(DataType.binary()).to_pylist())
    whole = b"\n".join(filter(None, raw))
    try:
        whole.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in whole


def texts_of(column: Array, problem: Callable[..., None]) -> list[str | None]:
    """Texts of a column; what is none is named. arro3 ends the process at invalid UTF-8."""
    raw = cast(list[bytes | None], column.cast(DataType.binary()).to_pylist())
    texts: list[str | None] = []
    for place, content in enumerate(raw):
        text = None
        try:
            text = None if content is None else content.decode()
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            problem(place, f"byte 0x{byte:02x} of its text is not valid in utf-8", is_rejected=True)
        if text is not None and "\0" in text:
            problem(place, NUL)
            text = text.replace("\0", "\ufffd")
        texts.append(text)
    return texts


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str) if _is_nested(value) else str(value)


def _is_nested(value: Any) -> bool:
    return isinstance(value, list | dict)
