"""Fields that a file must have a column for."""

from collections.abc import Sequence
from typing import Protocol

from contracts.spreadsheets import Alternative, MappingStatus


class Field(Protocol):
    """A field of an import type."""

    @property
    def name(self) -> str: ...
    @property
    def required(self) -> bool: ...
    @property
    def either(self) -> str | None: ...


class Column(Protocol):
    """A column, and what it means or may mean."""

    @property
    def target(self) -> str | None: ...
    @property
    def status(self) -> MappingStatus: ...
    @property
    def alternatives(self) -> tuple[Alternative, ...]: ...


def missing_fields(columns: Sequence[Column], fields: Sequence[Field]) -> tuple[str, ...]:
    """Required fields that no column has.

    Of two fields of which a file needs either, the second is asked for only if a column that fills
    no field may hold it.
    """
    taken = {column.target for column in columns if column.target is not None}
    possible = {
        each.name
        for column in columns
        if column.status is MappingStatus.UNMATCHED
        for each in column.alternatives
    }
    return tuple(
        field.name
        for field in fields
        if field.required
        and field.name not in taken
        and (field.either not in taken or field.name in possible)
    )
