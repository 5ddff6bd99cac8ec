"""What the fields of declared types refer to: rows of another type, or of any table or view."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from adapters.types.checks import checks_of
from adapters.types.countries import country_names
from adapters.types.files import builtin_types
from adapters.types.tables import SCHEMA, register_table
from workflows.shared.conversion import Flaw, read_cells
from workflows.shared.declared_fields import DeclaredField, field_spec
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import NUMBERS
from workflows.shared.notations import Notation
from workflows.shared.row_rules import broken_rules, failed_checks


@dataclass(frozen=True, slots=True)
class Referred:
    """What a field of kind reference refers to.

    Attributes:
        title: What to call it in problems.
        key: Column whose value is stored.
        label: Column that people write; the same, or another one.
        unknown: What happens to a value that it does not hold.
        table: What `DOMAIN` has it under, if it is of a declared type.
        name: Of the table in the database, if it is another one.
        schema: Of that table.
        scope: Columns that bound its rows and that the referring rows have too.
        type_name: The declared type, if it is of one.
        can_create: A row of it may hold its key alone; which keys it takes, `row_made` says.
        any_key: That key may be any text.
        declared: That type.
    """

    title: str
    key: str
    label: str
    unknown: Literal["ask", "create", "refuse"]
    table: str | None = None
    name: str | None = None
    schema: str | None = None
    scope: tuple[str, ...] = ()
    type_name: str | None = None
    can_create: bool = False
    any_key: bool = False
    declared: DeclaredType | None = None


def table_of(declared: DeclaredType, *, schema: str | None = SCHEMA) -> str:
    """What `DOMAIN` has the table of a type under, of docflow's own or a declared one.

    Args:
        declared: The type.
        schema: Of the tables of declared types; None: that of the session, as in a dry run.
    """
    own = builtin_types().get(declared.name)
    return declared.table_name if own is not None else register_table(declared, schema=schema)


def referred_by(
    declared: DeclaredType, known: Mapping[str, DeclaredType], *, schema: str | None = SCHEMA
) -> Mapping[str, Referred]:
    """What the references of a type refer to, by field.

    Args:
        declared: The type.
        known: The types that are in force, by name.
        schema: As in `table_of`.

    Raises:
        RuleViolation: A type that is referred to is not in force.
    """
    known = {**builtin_types(), **known, declared.name: declared}
    return {
        name: _referred(name, field, declared, known, schema)
        for name, field in declared.fields.items()
        if field.kind == "reference"
    }


def row_made(referred: Referred, scope: Mapping[str, Any], value: str) -> tuple[Any, str | None]:
    """Return the key of a row that would hold it alone, and why the type refuses the row.

    Args:
        referred: The type of the row.
        scope: What the referring rows share.
        value: As a cell has it.

    Raises:
        RuleViolation: A check of the type is not installed on this machine.
    """
    declared = referred.declared
    if declared is None:
        return value, "only rows of declared types can be created"
    name = declared.key[0]
    key = _read_key(declared, value)
    if isinstance(key, Flaw):
        return key, f"{name} {key.reason}"
    if others := [n for n, each in declared.fields.items() if each.required and n != name]:
        return key, f"its rows need {', '.join(others)}"
    bounds = {each: scope[each] for each in referred.scope}
    found = (
        *broken_rules(declared, {name: [key]}),
        *failed_checks(declared, checks_of(declared), {name: [key]}, bounds, ()),
    )
    return key, next((f"{field} {reason}" for _, field, reason in found), None)


def key_meant(referred: Referred, value: str) -> str:
    """Return the key that a value is another spelling of, or the value itself.

    These are the other ways to write a choice, and the names of a country.
    """
    declared = referred.declared
    if declared is None or declared.fields[declared.key[0]].kind not in ("choice", "country"):
        return value
    key = _read_key(declared, value)
    return key if isinstance(key, str) else value


def _read_key(declared: DeclaredType, value: str) -> Any:
    """A cell as the key of a row: its value, or what is wrong with it."""
    name = declared.key[0]
    field = declared.fields[name]
    spec = field_spec(name, field, country_names() if field.kind == "country" else None)
    notation = Notation.POINT if spec.kind in NUMBERS else None
    (key,), _ = read_cells(spec, [value], notation, is_key=True)
    return key


def _holds_any_text(key: DeclaredField) -> bool:
    return key.kind in ("code", "text") and key.pattern is None


def _referred(
    name: str,
    field: DeclaredField,
    declared: DeclaredType,
    known: Mapping[str, DeclaredType],
    schema: str | None,
) -> Referred:
    unknown = field.unknown or "ask"
    if field.to is None:
        within, _, table = str(field.table).rpartition(".")
        *bounds, key = field.row_key or ("",)
        return Referred(
            *(str(field.table), key, field.label or key, unknown, None, table),
            within or "public",
            tuple(bounds),
        )
    if field.to not in known:
        raise RuleViolation(
            f"{name} refers to the type {field.to}, which is not in force; put it in force "
            "with `docflow type apply`, and retry"
        )
    target = known[field.to]
    can_create = target.target is None and not any(
        each.required for name, each in target.fields.items() if name not in target.key
    )
    return Referred(
        *(target.name, target.key[0], target.key[0], unknown),
        table=table_of(target, schema=schema),
        scope=tuple(each for each in target.scope if each in declared.scope),
        type_name=target.name,
        can_create=can_create,
        any_key=can_create
        and _holds_any_text(target.fields[target.key[0]])
        and not (target.rules or target.checks),
        declared=target,
    )
