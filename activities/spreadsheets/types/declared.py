"""Import types of declared tables: docflow's own, and those of teams."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from activities.spreadsheets.entities import REFERENCE, ImportContext
from activities.spreadsheets.types.base import (
    ContextSpec,
    Fault,
    Maker,
    SheetRows,
    SheetType,
    Target,
    context_ids,
    organisation,
)
from adapters.types.countries import country_names
from adapters.types.files import contexts
from adapters.types.references import Referred
from workflows.shared.declared_fields import field_spec
from workflows.shared.declared_types import (
    ORGANISATION,
    OTHER,
    DeclaredType,
)
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.row_rules import KEPT, broken_rules, keeps_stored
from workflows.shared.sections import SECTION, SEQUENCE

CONTEXTS: Final[Mapping[str, ContextSpec]] = MappingProxyType(
    {
        name: ContextSpec(each.table_name, each.title.removesuffix("s"))
        for name, each in contexts().items()
    }
)
"""What the rows of such a scope belong to."""
_SEPARATOR: Final = "\x1f"


def declared_sheet(
    declared: DeclaredType, table: str, referred: Mapping[str, Referred]
) -> SheetType:
    """How uploads of a declared type are read, and what their rows become.

    Args:
        declared: The version of the type.
        table: What `DOMAIN` has its table under.
        referred: What each field of kind reference refers to.
    """
    fields = tuple(_field(declared, name, table, referred.get(name)) for name in declared.fields)

    def keys(rows: SheetRows) -> Sequence[str]:
        # Before rows of the same key are numbered, they have none of the sequence.
        columns = [rows[name] if name in rows else [""] * len(rows) for name in declared.key]
        return [_SEPARATOR.join(map(str, row)) for row in zip(*columns, strict=True)]

    def check(rows: SheetRows, context: ImportContext) -> Iterator[Fault]:
        yield from faults(declared, rows)

    return SheetType(
        name=declared.name,
        title=declared.title,
        context=None,
        fields=fields,
        targets=(
            Target(
                table,
                declared.natural_key,
                made=_made(declared, fields),
                strategy=declared.strategy,
            ),
        ),
        main=table,
        keys=keys,
        check=check,
        declared=declared,
        referred={_resolver(name): each for name, each in referred.items()},
    )


def _resolver(field: str) -> str:
    return REFERENCE + field


def _field(declared: DeclaredType, name: str, table: str, referred: Referred | None) -> FieldSpec:
    field = declared.fields[name]
    spec = field_spec(name, field, country_names() if field.kind == "country" else None)
    title = field.title or name.replace("_", " ").capitalize()
    spec = replace(spec, title=title, target=f"{table}.{name}")
    if referred is None:
        return spec
    return replace(
        spec,
        kind=ColumnKind.ENTITY,
        resolver=_resolver(name),
        creates=referred.can_create and referred.unknown != "refuse",
        unknown="ask"
        if referred.unknown == "create" and not referred.can_create
        else referred.unknown,
        max_length=None,
        pattern=None,
    )


def club_sheet(declared: DeclaredType) -> SheetType:
    """How uploads of what people of clubs refer to are read; their rows have ids.

    Args:
        declared: The type, whose scope is the organisation or what an upload belongs to.
    """
    table = declared.table_name
    sheet = declared_sheet(declared, table, {})
    (owner,) = declared.scope
    made: dict[str, Maker] = {owner: organisation if owner == ORGANISATION else context_ids}
    target = Target(table, declared.natural_key, made=MappingProxyType(made))
    return replace(sheet, context=CONTEXTS.get(owner), targets=(target,))


def _made(declared: DeclaredType, fields: Sequence[FieldSpec]) -> Mapping[str, Maker]:
    """Columns of the key that the file need not have: the scope, and parts with a default."""
    made: dict[str, Maker] = {name: _of_scope(name) for name in declared.scope}
    blanks = {each.name: each.blank for each in fields}
    made |= {
        name: _of_rows(name, blanks[name])
        for name in declared.key
        if blanks[name] is not None or name in (SEQUENCE, SECTION)
    }
    if declared.unmapped == "keep":
        made[OTHER] = _of_rows(OTHER, None)
    return MappingProxyType(made)


def _of_scope(name: str) -> Maker:
    return lambda rows, context: [context.scope[name]] * len(rows)


def _of_rows(name: str, blank: Any) -> Maker:
    """The values of a field, or its default where the file has no column for it."""
    return lambda rows, context: rows[name] if name in rows else [blank] * len(rows)


def faults(declared: DeclaredType, rows: SheetRows) -> Iterator[Fault]:
    """What is wrong with rows by the rules and the period of a type, whatever is stored."""
    blank = KEPT if keeps_stored(declared, declared.strategy) else None
    values = {n: [blank if v is None else v for v in rows[n]] for n in declared.fields}
    for row, name, reason in broken_rules(declared, values, title=_title_in(declared)):
        yield Fault(row, name, reason)


def _title_in(declared: DeclaredType) -> Callable[[str], str]:
    return lambda name: declared.fields[name].title or name
