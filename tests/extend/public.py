"""What `docflow.extend` offers, a line for each name and its members.

`python -m tests.extend.public > tests/extend/public.txt` writes it anew: review the difference,
since packages of others break if a line changes or goes.
"""

import dataclasses
import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any

from pydantic import BaseModel

import docflow.extend


def lines() -> Iterator[str]:
    """Names and members, sorted."""
    for name in sorted(docflow.extend.__all__):
        yield from _lines(name, getattr(docflow.extend, name))


def _lines(name: str, public: Any) -> Iterator[str]:
    if not inspect.isclass(public):
        yield f"{name}{inspect.signature(public)}" if inspect.isfunction(public) else name
        return
    bases = ", ".join(each.__name__ for each in public.__bases__ if each is not object)
    yield f"{name}({bases})"
    if issubclass(public, Enum):
        yield from (f"{name}.{each}" for each in public.__members__)
    elif issubclass(public, BaseModel):
        for field, known in public.model_fields.items():
            yield f"{name}.{field}" + ("" if known.is_required() else " = ...")
    elif dataclasses.is_dataclass(public):
        for each in dataclasses.fields(public):
            no_default = each.default is each.default_factory is dataclasses.MISSING
            if not each.name.startswith("_"):
                yield f"{name}.{each.name}" + ("" if no_default else " = ...")
    if not issubclass(public, Enum | BaseModel):
        for member, value in sorted(vars(public).items()):
            if inspect.isfunction(value) and (not member.startswith("_") or member == "__init__"):
                yield f"{name}.{member}({', '.join(inspect.signature(value).parameters)})"


if __name__ == "__main__":
    print("\n".join(lines()))
