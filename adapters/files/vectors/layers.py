"""What the readers of vector formats give: layers, features in chunks, and what they refuse."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import shapely
from arro3.core import Array, DataType

from workflows.jobs.vectors import COLUMNS, ColumnType, FeatureProblem, ordinal_of

CHUNK: Final = 10_000
"""Features that are worked on at once."""
NUL: Final = "its text holds NUL, which is replaced by U+FFFD"
"""What is said of a text that no database takes."""

_TYPES: Final = {
    ColumnType.TEXT: DataType.utf8(),
    ColumnType.INTEGER: DataType.int64(),
    ColumnType.REAL: DataType.float64(),
    ColumnType.BOOLEAN: DataType.bool(),
    ColumnType.BINARY: DataType.binary(),
}
_COUNTED: Final = {
    ColumnType.DATE: (DataType.int32(), DataType.date32()),
    ColumnType.TIME: (DataType.int64(), DataType.time64("us")),
    ColumnType.TIMESTAMP: (DataType.int64(), DataType.timestamp("us")),
    ColumnType.INSTANT: (DataType.int64(), DataType.timestamp("us", tz="UTC")),
}
"""Types that Arrow counts from 1970 or midnight."""


class Refused(Exception):
    """The file cannot be loaded; the message says why, and what to do."""


class Unsure(Exception):
    """Something has to be given by a person.

    Attributes:
        parameter: Of the job; its name.
    """

    def __init__(self, parameter: str, question: str) -> None:
        super().__init__(question)
        self.parameter = parameter


@dataclass(frozen=True, slots=True)
class SourceField:
    """An attribute, as its file calls it."""

    name: str
    type: ColumnType
    is_empty: bool = False


@dataclass(slots=True)
class Chunk:
    """Some features of a layer."""

    numbers: np.ndarray[Any, Any]
    """Of the features in the layer, from 1."""
    geometries: np.ndarray[Any, Any]
    """Of `shapely`, in the CRS of the layer; None: there is none."""
    columns: Sequence[Array]
    problems: list[FeatureProblem] = field(default_factory=list[FeatureProblem])


@dataclass(slots=True)
class Layer:
    """One layer of a file."""

    name: str
    crs: str | None
    """As `pyproj` understands it; None: the file does not say."""
    fields: Sequence[SourceField]
    chunks: Callable[[], Iterator[Chunk]]
    bounds: tuple[float, float, float, float] | None = None
    """Of the coordinates, in the CRS of the layer."""
    encoding: str | None = None
    features: int | None = None
    """How many; None: that is not known before they are read."""
    notes: list[str] = field(default_factory=list[str])
    """What was changed or left out; may grow while chunks are read."""


@dataclass(slots=True)
class Source:
    """What a file holds."""

    format: str
    layers: list[Layer]
    left_out: list[str] = field(default_factory=list[str])


class Columns:
    """Attributes of features, whose names become known as they come; what one lacks is None."""

    def __init__(self, values: dict[str, list[Any]] | None = None) -> None:
        self.values: dict[str, list[Any]] = values or {}
        self._features = 0

    def add(self, feature: Mapping[str, Any]) -> None:
        """Add the attributes of one more.

        Raises:
            Refused: There are more names than a table has columns.
        """
        for name, value in feature.items():
            if name not in self.values:
                self.values[name] = [None] * self._features
                if len(self.values) > COLUMNS:
                    raise Refused(f"features have more than {COLUMNS:,} different attributes")
            self.values[name].append(value)
        self._features += 1
        for column in self.values.values():
            if len(column) < self._features:
                column.append(None)


_BOOLEANS: Final = {"1": True, "true": True, "0": False, "false": False}
_READERS: Final[Mapping[ColumnType, tuple[Callable[[str], Any], str]]] = {
    ColumnType.INTEGER: (int, "a whole number"),
    ColumnType.REAL: (float, "a number"),
    ColumnType.BOOLEAN: (lambda text: _BOOLEANS[text.lower()], "a boolean"),
}


def typed(
    kind: ColumnType, name: str, texts: Sequence[str | None], problems: list[FeatureProblem]
) -> list[Any]:
    """Values of texts of which a file says the type; what is none is left empty and named."""
    read, noun = _READERS[kind]
    found: list[Any] = []
    for number, text in enumerate(texts, start=1):
        try:
            found.append(read(text) if text else None)
        except (ValueError, KeyError):
            found.append(None)
            reason = f"{str(text)[:40]!r} is not {noun}; left empty"
            problems.append(
                FeatureProblem(feature=number, field=name, reason=reason, is_rejected=False)
            )
    return found


def array_of(kind: ColumnType, values: Sequence[Any]) -> Array:
    """Values of a column in Arrow; None is null."""
    if kind in _COUNTED:
        counted, final = _COUNTED[kind]
        return Array([ordinal_of(value) for value in values], type=counted).cast(final)
    return Array(list(values), type=_TYPES[kind])


def arrow_type(kind: ColumnType) -> DataType:
    """The type that `array_of` gives."""
    return _COUNTED[kind][1] if kind in _COUNTED else _TYPES[kind]


def binary_of(column: Array) -> np.ndarray[Any, Any]:
    """Binary values for `shapely`; Arrow's own way to numpy has no nulls."""
    return np.array([*column.to_pylist(), None], dtype=object)[:-1]


def bounds_of(geometries: np.ndarray[Any, Any]) -> tuple[float, float, float, float] | None:
    """What geometries cover; None: there is no coordinate, or one that is not a number."""
    if not len(geometries):
        return None
    west, south, east, north = (float(each) for each in shapely.total_bounds(geometries))
    found = (west, south, east, north)
    return found if all(map(math.isfinite, found)) else None


def in_chunks(
    geometries: np.ndarray[Any, Any],
    fields: Sequence[SourceField],
    values: Sequence[Sequence[Any]],
    problems: Sequence[FeatureProblem],
    numbers: np.ndarray[Any, Any] | None = None,
) -> Iterator[Chunk]:
    """Features that are in memory, as chunks.

    Args:
        geometries: One each.
        fields: Names and types of the attributes.
        values: One sequence for each field.
        problems: Of all features; each goes with the chunk that its feature is in.
        numbers: Of the features; None: 1, 2, 3.
    """
    count = len(geometries)
    numbers = np.arange(1, count + 1) if numbers is None else numbers
    for start in range(0, max(count, 1), CHUNK):
        own = slice(start, min(start + CHUNK, count))
        there = set(numbers[own].tolist())
        found = [problem for problem in problems if problem.feature in there]
        columns = [
            array_of(each.type, _without_nul(each, column[own], numbers[own], found))
            for each, column in zip(fields, values, strict=True)
        ]
        yield Chunk(numbers[own], geometries[own], columns, found)


def _without_nul(
    field: SourceField,
    values: Sequence[Any],
    numbers: np.ndarray[Any, Any],
    problems: list[FeatureProblem],
) -> Sequence[Any]:
    """Values of which each text can be stored; those that were changed are named."""
    if field.type is not ColumnType.TEXT:
        return values
    found = list(values)
    for place, value in enumerate(found):
        if value is not None and "\0" in value:
            found[place] = value.replace("\0", "\ufffd")
            number = int(numbers[place])
            problems.append(
                FeatureProblem(feature=number, field=field.name, reason=NUL, is_rejected=False)
            )
    return found
