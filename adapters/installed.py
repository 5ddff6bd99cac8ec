"""What installed packages add to docflow: entry points, each loaded by itself.

A package that cannot be loaded, or that takes a name that is in use, costs its own extension alone:
the process logs what is wrong and works on.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Generic, TypeVar

T = TypeVar("T")
OWN: Final = "docflow"
"""Name of the package that docflow itself is."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Installed(Generic[T]):
    """The extensions of one group, by name."""

    found: Mapping[str, T]
    packages: Mapping[str, str]
    """Name of an extension to the package that brings it."""
    problems: tuple[str, ...] = ()
    """Extensions that were refused, each with its package and the reason."""


def installed(
    group: str, load: Callable[[EntryPoint], Iterable[tuple[str, T]]], taken: Iterable[str] = ()
) -> Installed[T]:
    """Load every extension of a group; docflow's own come first, the others by package.

    Args:
        group: Of entry points.
        load: What one entry point brings, by name; it may raise anything.
        taken: Names that are built in.
    """
    found: dict[str, T] = {}
    packages = dict.fromkeys(taken, OWN)
    problems: list[str] = []
    for point in sorted(entry_points(group=group), key=_order):
        package = _package(point)
        try:
            brought = list(load(point))
        except Exception as error:
            # Code of others, which may raise anything while it is imported.
            reason = f"{type(error).__name__}: {error}"
            problems.append(
                f"the package {package} is not used: its entry point {point.name!r} of {group} "
                f"({point.value}) fails with {reason}; repair or uninstall it"
            )
            continue
        for name, each in brought:
            if name in packages:
                problems.append(
                    f"the package {package} brings {name!r} of {group}, which {packages[name]} "
                    "has already; rename one of them"
                )
                continue
            found[name], packages[name] = each, package
    for problem in problems:
        logger.error("%s", problem)
    return Installed(found, packages, tuple(problems))


def _package(point: EntryPoint) -> str:
    return "?" if point.dist is None else point.dist.name


def _order(point: EntryPoint) -> tuple[bool, str, str]:
    package = _package(point)
    return package != OWN, package, point.name
