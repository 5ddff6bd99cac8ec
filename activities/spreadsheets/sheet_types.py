"""The import types there are."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from activities.spreadsheets import types as package
from activities.spreadsheets.types.base import SheetType
from workflows.shared.errors import RuleViolation

_MODULES: Final = tuple(
    importlib.import_module(f"{package.__name__}.{found.name}")
    for found in pkgutil.iter_modules(package.__path__)
)


@cache
def discover() -> Mapping[str, SheetType]:
    """Every import type of `types` by name: the `TYPE` of each module that has one.

    Raises:
        ValueError: Two modules declare a type of the same name.
    """
    declared = [getattr(module, "TYPE", None) for module in _MODULES]
    return MappingProxyType(_by_name(each for each in declared if isinstance(each, SheetType)))


def _by_name(types: Iterable[SheetType]) -> dict[str, SheetType]:
    named: dict[str, SheetType] = {}
    for each in types:
        if named.setdefault(each.name, each) is not each:
            raise ValueError(f"two import types are called {each.name}")
    return named


class SheetTypes:
    """The import types that an installation knows.

    Args:
        types: All of them; those of `types` when absent.
    """

    def __init__(self, types: Iterable[SheetType] | None = None) -> None:
        self._types = discover() if types is None else _by_name(types)

    def __iter__(self) -> Iterator[SheetType]:
        return iter(self._types.values())

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def get(self, name: str) -> SheetType:
        """The type of this name.

        Raises:
            RuleViolation: There is none.
        """
        if name not in self._types:
            known = ", ".join(sorted(self._types))
            raise RuleViolation(f"there is no import type {name}; there are {known}")
        return self._types[name]
