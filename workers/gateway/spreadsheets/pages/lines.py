"""Lines of the mapping tables: what stands there, what was chosen, what changed meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.database.spreadsheets.views import ColumnView
from contracts.spreadsheets import CellMapping, DecisionRecord, MappingStatus
from domain.spreadsheets.bibs import SAME_BIB
from domain.spreadsheets.people import PERSON
from workers.gateway.pages.language import N_, gettext, localised
from workers.gateway.pages.renderer import before_now
from workers.gateway.spreadsheets.pages.forms import (
    CREATE,
    LEFT_OUT,
    OPEN,
    Choice,
    Form,
    chosen_name,
    meaning,
    shown_cell,
    shown_column,
)
from workers.services.spreadsheets.choices import FieldView

_LEFT_EMPTY: Final = {SAME_BIB.name: N_("Import the row without the bib")}
_CREATED: Final = {PERSON.name: N_("Another person"), SAME_BIB.name: N_("Both have this bib")}
"""What it is called to answer a question with “create”, by field."""
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

    column: ColumnView
    shown: str
    """What stands in the database."""
    chosen: str
    """What the page has selected."""
    note: str
    """What another person changed about it meanwhile."""
    options: Sequence[tuple[str, Sequence[FieldOption]]]
    suggestions: Sequence[Suggestion]

    @property
    def is_changed(self) -> bool:
        """The page has something selected that is not saved."""
        return self.chosen != self.shown

    @property
    def is_open(self) -> bool:
        """There is no decision about it so far."""
        return self.column.status is MappingStatus.UNMATCHED


@dataclass(frozen=True, slots=True)
class ValueOption:
    """Something that a value may mean."""

    choice: str
    text: str
    chosen: bool
    score: float | None = None


@dataclass(frozen=True, slots=True)
class ValueLine:
    """A distinct value, and what is chosen for it."""

    cell: CellMapping
    title: str
    """Of its field."""
    shown: str
    chosen: str
    note: str
    options: Sequence[ValueOption]

    @property
    def is_changed(self) -> bool:
        """The page has something selected that is not saved."""
        return meaning(self.chosen) != meaning(self.shown)

    @property
    def is_open(self) -> bool:
        """There is no decision about it so far."""
        return self.cell.status is MappingStatus.UNMATCHED


class Trail:
    """The latest decisions, to inform others."""

    def __init__(self, records: Sequence[DecisionRecord]) -> None:
        """Take the newest decisions, the newest first."""
        self._records = records

    def about(self, subject: str) -> str:
        """Who decided about a column or value last, and how long ago; "" when it is not known."""
        for record in self._records:
            if record.subject == subject:
                return gettext("by %(who)s, %(ago)s", who=record.by, ago=before_now(record.at))
        return ""

    def latest(self) -> str:
        """Who decided anything last."""
        return self._records[0].by if self._records else gettext("Another person")


def column_lines(
    columns: Sequence[ColumnView],
    fields: Sequence[FieldView],
    choices: Mapping[int, Choice],
    trail: Trail,
) -> Sequence[ColumnLine]:
    """The table of columns; choices of a form that was not taken are kept."""
    titles = {field.name: field.title for field in fields}
    holders = {column.target: column for column in columns if column.target}
    lines: list[ColumnLine] = []
    for column in columns:
        shown = shown_column(column)
        chosen, note = _merged(
            shown,
            choices.get(column.id),
            lambda choice: _column_words(choice, titles),
            trail.about(column.header),
        )
        options = _field_options(fields, column, holders)
        suggestions = [
            Suggestion(it.name, titles.get(it.name, it.name), it.score, it.why)
            for it in column.alternatives
            if column.status is MappingStatus.UNMATCHED
        ]
        lines.append(ColumnLine(column, shown, chosen, note, options, suggestions))
    return lines


def value_lines(
    cells: Sequence[CellMapping],
    fields: Mapping[str, FieldView],
    choices: Mapping[int, Choice],
    trail: Trail,
) -> Sequence[ValueLine]:
    """The table of values; choices of a form that was not taken are kept."""
    lines: list[ValueLine] = []
    for cell in cells:
        field = fields.get(cell.field)
        title = field.title if field else cell.field
        shown = shown_cell(cell)
        chosen, note = _merged(
            shown,
            choices.get(cell.id),
            lambda choice, value=cell.value: _value_words(choice, value),
            trail.about(f"{cell.field}: {cell.value}"),
        )
        options = _value_options(cell, chosen, creates=bool(field and field.creates))
        lines.append(ValueLine(cell, title, shown, chosen, note, options))
    return lines


def unsaved(form: Form, panel: str, choices: Mapping[int, Choice]) -> tuple[str, ...]:
    """What a person had chosen in a form that cannot be taken any more, in words."""
    kind = panel.removesuffix("s")
    return tuple(
        f"{form.text(f'label_{kind}-{id}')}: {_either_words(choice.chosen)}"
        for id, choice in choices.items()
        if choice.changed and choice.chosen
    )


def _merged(
    shown: str, choice: Choice | None, words: Callable[[str], str], by: str
) -> tuple[str, str]:
    """What the page selects, and its message about a change by another person."""
    if choice is None:
        return shown, ""
    mine = choice.chosen if choice.changed else shown
    has_mine = choice.changed and meaning(mine) == meaning(shown)
    if has_mine or meaning(choice.seen) == meaning(shown):
        return mine, ""
    now = words(shown)
    if by:
        note = gettext("Changed meanwhile %(by)s: now %(now)s.", by=by, now=now)
    else:
        note = gettext("Changed meanwhile: now %(now)s.", now=now)
    if meaning(mine) != meaning(shown):
        note += " " + gettext("Your choice, %(choice)s, is not saved.", choice=words(mine))
    return mine, note


def _field_options(
    fields: Sequence[FieldView], column: ColumnView, holders: Mapping[str, ColumnView]
) -> Sequence[tuple[str, Sequence[FieldOption]]]:
    def option(field: FieldView) -> FieldOption:
        holder = holders.get(field.name)
        taken_by = "" if holder is None or holder.id == column.id else holder.header
        return FieldOption(field.name, field.title, field.required, taken_by[:_LONGEST_NAME])

    groups = (
        (N_("Required"), [option(field) for field in fields if field.required]),
        (N_("Further fields"), [option(field) for field in fields if not field.required]),
    )
    return [group for group in groups if group[1]]


def _value_options(cell: CellMapping, chosen: str, *, creates: bool) -> Sequence[ValueOption]:
    found = {
        f"{it.id}:{it.name}": ValueOption(
            f"{it.id}:{it.name}", it.name, False, None if cell.question else it.score
        )
        for it in cell.alternatives
        if it.id is not None
    }
    for choice in (shown_cell(cell), chosen):
        if choice not in (OPEN, LEFT_OUT, CREATE):
            found.setdefault(choice, ValueOption(choice, chosen_name(choice), False))
    is_person = cell.field == PERSON.name
    left_out = _LEFT_EMPTY.get(cell.field, N_("Leave empty"))
    if is_person:
        left_out = N_("Leave the row out")
    options = [*found.values(), ValueOption(LEFT_OUT, localised(left_out), False)]
    if creates:
        named = _CREATED.get(cell.field)
        added = localised(named) if named else gettext("Add “%(value)s”", value=cell.value)
        options.append(ValueOption(CREATE, added, False))
    return [
        ValueOption(it.choice, it.text, meaning(it.choice) == meaning(chosen), it.score)
        for it in options
    ]


def _column_words(choice: str, titles: Mapping[str, str]) -> str:
    return {OPEN: gettext("not chosen"), LEFT_OUT: gettext("left out")}.get(
        choice
    ) or f"“{localised(titles.get(choice, choice))}”"


def _value_words(choice: str, value: str) -> str:
    special = {
        OPEN: gettext("open"),
        LEFT_OUT: gettext("left empty"),
        CREATE: gettext("added as “%(value)s”", value=value),
    }
    return special.get(choice) or f"“{chosen_name(choice)}”"


def _either_words(choice: str) -> str:
    special = {LEFT_OUT: gettext("leave out"), CREATE: gettext("add")}
    return special.get(choice) or chosen_name(choice) or choice.replace("_", " ").lower()
