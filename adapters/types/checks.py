"""Row checks of installed packages: functions that declared types name.

docflow calls a check with the values of one row, and rejects the row for what it finds.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint
from itertools import islice
from typing import Any, Final, cast

from adapters.installed import Installed, installed
from workflows.shared.cells import readable
from workflows.shared.declared_types import DeclaredType, RowCheck
from workflows.shared.errors import RuleViolation

GROUP: Final = "docflow.row_checks"
"""Entry points that name a check."""
MOST_PROBLEMS: Final = 20
"""Problems of one row that are taken from one check."""
_REASON_CHARACTERS: Final = 500


@cache
def installed_checks() -> Installed[RowCheck]:
    """Return the checks of installed packages."""

    def brought(point: EntryPoint) -> list[tuple[str, RowCheck]]:
        found: Any = point.load()
        if not callable(found):
            raise TypeError(f"{point.value} is no function")
        return [(point.name, cast("RowCheck", found))]

    return installed(GROUP, brought)


def why_missing(name: str) -> str | None:
    """Say why a check cannot be run on this machine; None: it can."""
    every = installed_checks()
    if name in every.found:
        return None
    known = ", ".join(sorted(every.found)) or "none"
    text = (
        f"the check {name!r} is not installed on this machine; installed are: {known}. Install "
        "its package here and where workers and the gateway run, and restart them"
    )
    return "; ".join((text, *every.problems))


def checks_of(declared: DeclaredType) -> tuple[RowCheck, ...]:
    """Return the checks of a type; each raises `RuleViolation` if it fails itself.

    Raises:
        RuleViolation: One is not installed on this machine.
    """
    for name in declared.checks:
        if (reason := why_missing(name)) is not None:
            raise RuleViolation(f"{declared.name}: {reason}; then retry")
    return tuple(_guarded(name, declared) for name in declared.checks)


def _guarded(name: str, declared: DeclaredType) -> RowCheck:
    every = installed_checks()
    check, package = every.found[name], every.packages[name]

    def guarded(values: Mapping[str, Any]) -> Sequence[tuple[str, str]]:
        try:
            found = [
                _problem(each, declared) for each in islice(check(values) or (), MOST_PROBLEMS)
            ]
        except Exception as error:
            # Code of others, which may raise anything.
            key = ", ".join(f"{field} {values[field]}" for field in declared.key)
            reason = f"{type(error).__name__}: {readable(str(error), _REASON_CHARACTERS)}"
            raise RuleViolation(
                f"the check {name!r} of the package {package} fails at the row with {key}: "
                f"{reason}. Install a repaired package, restart workers, and retry"
            ) from error
        return found

    return guarded


def _problem(found: Any, declared: DeclaredType) -> tuple[str, str]:
    field, reason = found
    if field not in declared.fields:
        raise ValueError(f"it names the field {field!r}, which {declared.name} does not have")
    if not isinstance(reason, str):
        raise TypeError(f"the reason {reason!r} is no text")
    return field, readable(reason, _REASON_CHARACTERS)
