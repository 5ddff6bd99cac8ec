"""What must hold of one row as it will be stored: its rules, its period and its checks."""

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from workflows.shared.conversion import Flaw
from workflows.shared.declared_fields import DeclaredRule, value_of
from workflows.shared.declared_types import DeclaredType, PeopleType, RowCheck

KEPT: Final = Flaw("keeps what is stored")
"""Stands for a cell that the file does not give: what is stored stays."""
MEETING: Final = frozenset({"merge", "replace", "update_only"})
"""Strategies under which rows of a file change stored ones, and keep what the file lacks."""
StoredRow = Mapping[str, Any]
"""Values of a stored row by field."""
_SHOWN: Final = 60
_HOLDS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = MappingProxyType(
    {
        "<": (operator.lt, "is not less than"),
        "<=": (operator.le, "is more than"),
        "=": (operator.eq, "differs from"),
        ">=": (operator.ge, "is less than"),
        ">": (operator.gt, "is not more than"),
    }
)
"""How a comparison is made, and what is said of one that does not hold."""


def keeps_stored(declared: DeclaredType, strategy: str) -> bool:
    """Return whether rows of a file meet stored rows, which keep what the file does not give."""
    if isinstance(declared, PeopleType):
        # Its rows are found by person, and not by a key that the file gives.
        return False
    is_file = declared.target is not None and declared.target.file is not None
    return strategy in MEETING and not is_file


def rule_fields(declared: DeclaredType) -> Sequence[str]:
    """Return the fields of rules and of the period."""
    names = (*(name for rule in declared.rules for name in rule.names), *(declared.period or ()))
    return [*dict.fromkeys(names)]


def kept_fields(declared: DeclaredType, given: Collection[str]) -> Sequence[str]:
    """Return the fields whose stored values rules need beside the given ones.

    Nothing is compared if no side of a comparison is given, beside the key.
    """
    compared = [rule.names for rule in declared.rules if rule.compare is not None]
    compared += [declared.period] if declared.period else []
    others = [rule.names for rule in declared.rules if rule.compare is None]
    own = {*given} - {*declared.key}
    needed = (name for names in compared if own & {*names} for name in names)
    names = (*needed, *(name for names in others for name in names))
    return [name for name in dict.fromkeys(names) if name not in given]


def broken_rules(
    declared: DeclaredType,
    values: Mapping[str, Sequence[Any]],
    stored: Sequence[StoredRow | None] | None = None,
    title: Callable[[str], str] = str,
) -> Iterator[tuple[int, str, str]]:
    """Find what is wrong with rows beyond single cells.

    A rule that needs a `KEPT` cell is judged with the stored rows alone. If a row changes no field
    of a rule beside its key, the rule says nothing about it.

    Args:
        declared: The type, whose rules and period must hold of each row.
        values: Converted cells by field; None is a blank, a `Flaw` a cell that is refused already,
            and a field without a column is blank in every row.
        stored: The stored row of each, None for one that is new, to judge what `KEPT` left open;
            None: judge the rules that need no stored row.
        title: What people call a field.

    Yields:
        Index of the row, the field that is shown with it, and the reason.
    """
    for rule in declared.rules:
        wanted = [value_of(declared.fields[n], text) for n, text in (rule.when or {}).items()]
        for row, cells, beside in _cells_of(rule.names, declared.key, values, stored):
            if (wrong := _broken(rule, cells, wanted)) is not None:
                name, reason = wrong
                yield row, name, (rule.says or reason) + beside
    if declared.period is not None:
        first, last = declared.period
        for row, (start, stop), beside in _cells_of(declared.period, declared.key, values, stored):
            if start is not None and stop is not None and stop < start:
                yield row, last, f"is before {title(first)} {start.isoformat()}{beside}"


def _cells_of(
    names: Sequence[str],
    key: Sequence[str],
    values: Mapping[str, Sequence[Any]],
    stored: Sequence[StoredRow | None] | None,
) -> Iterator[tuple[int, tuple[Any, ...], str]]:
    """The cells of some fields, of the rows of which all are known, and what is stored of them."""
    count = max(map(len, values.values()), default=0)
    columns = [values.get(name) or (None,) * count for name in names]
    for row, cells in enumerate(zip(*columns, strict=True)):
        beside = ""
        if stored is not None:
            there = stored[row]
            kept = [name for name, cell in zip(names, cells, strict=True) if cell is KEPT]
            if not kept or (there is not None and {*names} <= {*kept, *key}):
                continue
            found = dict.fromkeys(kept) if there is None else there
            cells = tuple(
                found[name] if name in kept else cell
                for name, cell in zip(names, cells, strict=True)
            )
            if there is not None:
                listed = ", ".join(f"{name} {_shown(there[name])}" for name in kept)
                beside = f" (stored: {listed})"
        if not any(isinstance(cell, Flaw) for cell in cells):
            yield row, cells, beside


def _shown(value: Any) -> str:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return "blank" if value is None else str(value)[:_SHOWN]


def failed_checks(
    declared: DeclaredType,
    checks: Sequence[RowCheck],
    values: Mapping[str, Sequence[Any]],
    scope: Mapping[str, str],
    aside: Collection[int],
) -> Iterator[tuple[int, str, str]]:
    """What checks say is wrong with rows.

    A check sees the scope and every field of its row, None for a blank, and no other row.

    Args:
        declared: The type.
        checks: What it checks rows with.
        values: As for `broken_rules`; a row with a `Flaw` is not checked.
        scope: What all rows share.
        aside: Rows that are not checked.

    Yields:
        Index of the row, the field that is shown with it, and the reason.
    """
    if not checks:
        return
    count = max(map(len, values.values()), default=0)
    columns = [values.get(name) or (None,) * count for name in declared.fields]
    for row, cells in enumerate(zip(*columns, strict=True)):
        if row in aside or any(isinstance(cell, Flaw) for cell in cells):
            continue
        seen = MappingProxyType({**scope, **dict(zip(declared.fields, cells, strict=True))})
        for check in checks:
            for name, reason in check(seen):
                yield row, name, reason


def _broken(
    rule: DeclaredRule, cells: Sequence[Any], wanted: Sequence[Any]
) -> tuple[str, str] | None:
    """The field and the reason, if the cells of a row break a rule."""
    names = rule.names
    filled = [cell is not None for cell in cells]
    if rule.any_of is not None:
        listed = " or ".join(names)
        return None if any(filled) else (names[0], f"is missing; fill in one of {listed}")
    if rule.together is not None:
        if all(filled) or not any(filled):
            return None
        missing, present = names[filled.index(False)], names[filled.index(True)]
        return missing, f"is missing beside {present}"
    if rule.compare is not None:
        holds, said = _HOLDS[rule.compare[1]]
        if all(filled) and not holds(*cells):
            return names[0], f"{said} {names[1]} {_shown(cells[1])}"
        return None
    assert rule.when is not None
    if filled[0] or list(cells[1:]) != list(wanted):
        return None
    reason = " and ".join(f"{name} is {value}" for name, value in rule.when.items())
    return names[0], f"is missing, and {reason}"
