"""What the columns of a file mean: the table that people choose it in, whoever asks.

A choice travels as text: "" nothing yet, "-" left out, else the name of a field. `mapping.html`
draws the table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from workers.shared.gateway.pages.renderer import N_
from workers.shared.text import Label

OPEN: Final = ""
LEFT_OUT: Final = "-"
_LONGEST_NAME: Final = 60
"""Characters of a header within an option."""


@dataclass(frozen=True, slots=True)
class FieldOption:
    """A field that a column may fill."""

    name: str
    title: str
    required: bool
    taken_by: str
    """Header of another column that fills it now; "" for none."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A field that a column might mean."""

    name: str
    title: str
    score: float
    why: str


@dataclass(frozen=True, slots=True)
class ColumnLine:
    """A column, and what is chosen for it."""

    id: int
    header: str
    samples: Sequence[str]
    status: Label
    shown: str
    """What counts now."""
    chosen: str
    """What the page has selected."""
    options: Sequence[tuple[str, Sequence[FieldOption]]]
    is_open: bool
    """There is no decision about it so far."""
    note: str = ""
    """What another person changed about it meanwhile."""
    suggestions: Sequence[Suggestion] = ()
    score: float | None = None
    """How well its header fits; None: that is not said."""
    why: str | None = None
    """Why it is thought to mean this."""
    blanks: Sequence[str] = ()
    """What counts as a blank cell."""

    @property
    def is_changed(self) -> bool:
        """The page has something selected that is not saved."""
        return self.chosen != self.shown


class Field(Protocol):
    """What a column may fill."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def required(self) -> bool: ...


Id = TypeVar("Id", int, str)


def field_options(
    fields: Sequence[Field], own: Id, holders: Mapping[str, tuple[Id, str]]
) -> Sequence[tuple[str, Sequence[FieldOption]]]:
    """The fields that a column may fill, required ones first.

    Args:
        fields: All of them.
        own: Names the column.
        holders: Field to the column that fills it now, and its header.
    """

    def option(field: Field) -> FieldOption:
        holder, header = holders.get(field.name, (own, ""))
        taken_by = "" if holder == own else header
        return FieldOption(field.name, field.title, field.required, taken_by[:_LONGEST_NAME])

    groups = (
        (N_("Required"), [option(field) for field in fields if field.required]),
        (N_("Further fields"), [option(field) for field in fields if not field.required]),
    )
    return [group for group in groups if group[1]]
