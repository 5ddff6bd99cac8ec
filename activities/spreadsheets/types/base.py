"""What an import type declares; everything else follows from it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, repeat
from types import MappingProxyType
from typing import Any, Final

from activities.spreadsheets.entities import ImportContext
from adapters.types.references import Referred
from workflows.shared.cells import Cell
from workflows.shared.declared_fields import DeclaredTarget
from workflows.shared.declared_types import DeclaredType
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.sections import SECTION, SEQUENCE
from workflows.spreadsheets.fields import KEYS, CustomList, TargetRows, TargetStrategy
from workflows.spreadsheets.mappings import FIELDS, TypeName
from workflows.spreadsheets.people import PERSONS_TABLE

CUSTOM_LIST: Final = "CUSTOM_LIST_"
"""What names of fields for custom lists begin with."""
_LIST_KEY: Final = re.compile(r"[A-Z0-9_]{1,52}")

__all__ = [
    "CUSTOM_LIST",
    "Cells",
    "ColumnKind",
    "ContextSpec",
    "Fault",
    "FieldSpec",
    "SheetRows",
    "SheetType",
    "Target",
    "context_ids",
    "organisation",
]


class SheetRows:
    """Converted rows, column by column; None stands for a blank.

    Args:
        count: How many rows.
        columns: Field to its values; a field that no column has is None throughout.
    """

    def __init__(self, count: int, columns: Mapping[str, Sequence[Any]]) -> None:
        self._count = count
        self._columns = columns

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: object) -> bool:
        """Whether a column of the file has the field."""
        return name in self._columns

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self._columns.get(name) or (None,) * self._count

    def only(self, kept: Sequence[bool]) -> "SheetRows":
        """Some of the rows, in their order."""
        columns = {name: list(compress(cells, kept)) for name, cells in self._columns.items()}
        return SheetRows(sum(kept), columns)


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one row."""

    row: int
    """Place in the rows that were checked."""
    field: str
    reason: str
    """Follows the field's title: `is in the future`."""


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """What the rows of a type belong to."""

    table: str
    """`events`, `membership_periods` or `races`."""
    title: str
    required: bool = True


Cells = Mapping[str, Sequence[Cell]]
"""Cells as read, by field."""
Maker = Callable[[SheetRows, ImportContext], Sequence[Any]]
"""Values of a column that no field fills."""


def organisation(rows: SheetRows, context: ImportContext) -> Sequence[int]:
    """The organisation of the import, for each row."""
    return [context.organisation_id] * len(rows)


def context_ids(rows: SheetRows, context: ImportContext) -> Sequence[int | None]:
    """Event, membership period or race of the import, for each row."""
    return [context.context_id] * len(rows)


@dataclass(frozen=True)
class Target:
    """A table that rows of a type go to, one row each.

    Attributes:
        table: The table.
        key: Columns of its natural key.
        made: Columns that no field fills.
        references: Column to an earlier target whose row's id it holds.
        strategy: How rows meet those that are there.
    """

    table: str
    key: tuple[str, ...]
    made: Mapping[str, Maker] = field(default_factory=lambda: MappingProxyType({}))
    references: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    strategy: TargetStrategy = "merge"

    def fill(
        self, fields: Sequence[FieldSpec], rows: SheetRows, context: ImportContext
    ) -> TargetRows:
        """What some rows become in this table."""
        mine = [
            each
            for each in fields
            if each.table == self.table and each.name in rows and each.column not in self.made
        ]
        columns = (*self.made, *(each.column for each in mine))
        values = (
            *(make(rows, context) for make in self.made.values()),
            *(rows[each.name] for each in mine),
        )
        tuples = list(zip(*values, strict=True)) if values else [()] * len(rows)
        return TargetRows(
            self.table, columns, tuples, range(len(rows)), self.references, self.strategy
        )


@dataclass(frozen=True)
class SheetType:
    """An import type.

    Attributes:
        name: As programs call it: EVENT_PARTICIPANT.
        title: As people call it.
        context: What the rows belong to; None: to the organisation alone.
        fields: Every field, custom lists left out.
        targets: Tables that rows go to; one that others refer to comes before them.
        main: Target whose rows decide between CREATED, UPDATED and SKIPPED.
        keys: What makes two rows of a file the same row, for each row; no row is without.
        check: What is wrong with rows beyond single cells. It may meet None in any field.
        arrange: Cells of each field, with what belongs to another field moved there; each of its
            columns has the rows of those given.
        custom_lists: Target that choices of the organisation's custom lists belong to.
        declared: The declaration that it is made of; None: the type is about people.
        referred: Resolver to what its fields refer to, of a declared type.
    """

    name: TypeName
    title: str
    context: ContextSpec | None
    fields: tuple[FieldSpec, ...]
    targets: tuple[Target, ...]
    main: str
    keys: Callable[[SheetRows], Sequence[str]]
    check: Callable[[SheetRows, ImportContext], Iterable[Fault]] = lambda rows, context: ()
    arrange: Callable[[Cells, ImportContext], Cells] = lambda cells, context: cells
    custom_lists: str | None = None
    declared: DeclaredType | None = None
    referred: Mapping[str, Referred] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        tables = [target.table for target in self.targets]
        names = [each.name for each in self.fields]
        if self.main not in tables:
            raise ValueError(f"{self.name}: main target {self.main} is not one of its targets")
        if len(set(names)) < len(names):
            raise ValueError(f"{self.name}: two fields have the same name")
        if lost := [each.name for each in self.fields if each.table not in tables]:
            raise ValueError(f"{self.name}: no target takes the values of {', '.join(lost)}")

    @cached_property
    def natural_key(self) -> tuple[str, ...]:
        """Columns of the main target that name a row."""
        return next(target.key for target in self.targets if target.table == self.main)

    @property
    def scope(self) -> tuple[str, ...]:
        """What an upload gives for all of its rows."""
        if self.declared is None or self.context is not None:
            return ()
        return self.declared.scope

    @property
    def target(self) -> DeclaredTarget | None:
        """Where rows go, if that is no table of docflow's."""
        return None if self.declared is None else self.declared.target

    @property
    def row(self) -> str:
        """What a person calls the key of a row."""
        return "person" if self.declared is None else self.declared.row

    @property
    def row_keys(self) -> frozenset[str]:
        """Fields that make a line of the file a row, whatever else it holds."""
        return KEYS if self.declared is None else frozenset(self.declared.key)

    @property
    def needed_keys(self) -> Sequence[str]:
        """Those of `row_keys` that a row must have; of a person it needs one."""
        if self.declared is None:
            return sorted(KEYS)
        return [name for name in self.declared.key if self.declared.fields[name].required]

    @property
    def own_references(self) -> tuple[str, ...]:
        """Fields that refer to rows of the same table, of which the file may hold some."""
        declared = self.declared
        if declared is None or declared.strategy == "update_only":
            return ()
        if declared.fields[declared.key[0]].kind not in ("code", "text"):
            return ()
        return tuple(
            each.name
            for each in self.fields
            if each.resolver
            and each.resolver in self.referred
            and self.referred[each.resolver].table == self.main
        )

    @property
    def has_sections(self) -> bool:
        """Whether the headings above a row are a part of its key."""
        return SECTION in self.row_keys

    @property
    def is_numbered(self) -> bool:
        """Whether rows of one key are told apart by their order."""
        return SEQUENCE in self.row_keys

    @cached_property
    def is_about_people(self) -> bool:
        """Whether each row is about a person, who may be known already."""
        return any(target.table == PERSONS_TABLE for target in self.targets)

    def fields_for(self, lists: Sequence[CustomList]) -> tuple[FieldSpec, ...]:
        """Every field, for an organisation with these custom lists.

        A list is left out when its key makes no name of a field, or when there are too many.
        """
        if self.custom_lists is None:
            return self.fields
        further = (_list_field(each) for each in lists if _LIST_KEY.fullmatch(each.key))
        return (*self.fields, *further)[:FIELDS]

    def rows_of_targets(
        self, fields: Sequence[FieldSpec], rows: SheetRows, context: ImportContext
    ) -> Sequence[TargetRows]:
        """What checked rows become, in the order they are written.

        Args:
            fields: As `fields_for` gives them.
            rows: The rows.
            context: Context of the import.
        """
        filled = [target.fill(fields, rows, context) for target in self.targets]
        if self.custom_lists is not None:
            chosen = list(_choices(fields, rows))
            if chosen:
                filled.append(_list_values(self.custom_lists, chosen))
        return filled


def _list_field(choices: CustomList) -> FieldSpec:
    return FieldSpec(
        CUSTOM_LIST + choices.key,
        title=choices.name,
        target=f"{_LIST_VALUES}.custom_list_item_id",
        kind=ColumnKind.ENTITY,
        resolver=f"custom_list/{choices.id}",
        creates=choices.open,
    )


_LIST_VALUES: Final = "custom_list_values"


def _choices(
    fields: Sequence[FieldSpec], rows: SheetRows
) -> Iterator[tuple[int, Sequence[int | None]]]:
    """Each custom list that the file has a column for, and what the rows chose from it."""
    for each in fields:
        if each.table == _LIST_VALUES and each.name in rows and each.resolver is not None:
            yield int(each.resolver.partition("/")[2]), rows[each.name]


def _list_values(owner: str, chosen: Sequence[tuple[int, Sequence[int | None]]]) -> TargetRows:
    values: list[tuple[int, int]] = []
    origin: list[int] = []
    for list_id, items in chosen:
        filled = [row for row, item in enumerate(items) if item is not None]
        values.extend(zip(repeat(list_id), filter(None, items), strict=False))
        origin.extend(filled)
    return TargetRows(
        _LIST_VALUES,
        ("custom_list_id", "custom_list_item_id"),
        values,
        origin,
        {"participant_id": owner},
    )
