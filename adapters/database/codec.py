"""Values that are kept as JSON text: cells as they were read, problems, counts."""

import json
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, Final

from pydantic import TypeAdapter
from sqlalchemy import BindParameter, bindparam

from contracts.base import built_when_used
from contracts.problems import Problem
from domain.tabular.rows import Cell

_PROBLEMS: Final = TypeAdapter(tuple[Problem, ...], config=built_when_used())
_SURROGATES: Final = {code: "\ufffd" for code in (0, *range(0xD800, 0xE000))}


def clean(text: str) -> str:
    """Text without the characters that PostgreSQL refuses (NUL, halves of surrogate pairs)."""
    return text.translate(_SURROGATES)


def literals(values: Sequence[str]) -> BindParameter[Any]:
    """Values for `in_` that stand in the text of the statement, and not in its parameters.

    A prepared statement uses an index of some rows only where its text says that it asks for those.
    """
    return bindparam(None, list(values), expanding=True, literal_execute=True)


def dump_problems(problems: Iterable[Problem]) -> str:
    """Problems as JSON."""
    return json.dumps([problem.model_dump(exclude_defaults=True) for problem in problems])


def load_problems(text: str) -> tuple[Problem, ...]:
    """Problems from JSON."""
    return _PROBLEMS.validate_json(text)


def dump_cells(cells: Sequence[Cell]) -> str:
    """Cells as JSON; dates and times become an object that names what they are."""
    return json.dumps(list(cells), default=_marked)


def load_cells(text: str) -> list[Cell]:
    """Cells from JSON, of the types they had."""
    return [_unmarked(cell) for cell in json.loads(text)]


def _marked(value: Any) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    raise TypeError(f"{type(value).__name__} is not a cell")


def _unmarked(value: Any) -> Cell:
    if isinstance(value, dict):
        ((kind, text),) = value.items()  # pyright: ignore[reportUnknownVariableType]
        return (datetime if kind == "datetime" else date).fromisoformat(str(text))  # pyright: ignore[reportUnknownArgumentType]
    return value
