"""The mapping pages: lines of their tables, their forms, what people decide.

Forms of the mapping pages: what was chosen, what of it is new, and what has changed meanwhile.

A choice travels as text: "" nothing yet, "-" left out, "+" created, a field's name for a column,
`id:name` of a candidate for a value. The form also carries what it showed (`seen`), so that a
person's own choices can be distinguished from changes by others since.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import urlencode

from pydantic import ValidationError

from activities.spreadsheets.records import ColumnView
from activities.spreadsheets.value_store import ValueFilter
from workers.shared.gateway.pages.mapping import (
    LEFT_OUT,
    OPEN,
    ColumnLine,
    Suggestion,
    field_options,
)
from workers.shared.gateway.pages.renderer import N_, before_now, gettext, localised
from workers.shared.gateway.pages.site import Form
from workers.shared.services.errors import Refused
from workers.spreadsheets.pages.labels import COLUMN_STATUS
from workers.spreadsheets.queries import FieldView
from workers.spreadsheets.upload_form import refused_if_invalid
from workflows.spreadsheets.fields import Entity
from workflows.spreadsheets.mappings import (
    CellDecision,
    CellMapping,
    CellRule,
    ColumnDecision,
    DecisionRecord,
    FieldName,
    MappingStatus,
)
from workflows.spreadsheets.names import SAME_BIB
from workflows.spreadsheets.people import PERSON

CREATE: Final = "+"
KEPT: Final = "+"
"""Of a row that is imported although it looks like none."""


@dataclass(frozen=True, slots=True)
class Target:
    """What the values of a field can mean: the first of a list."""

    field: str
    title: str
    found: Sequence[Entity]


class Column(Protocol):
    """What a choice about a column is compared with."""

    @property
    def id(self) -> int: ...
    @property
    def header(self) -> str: ...
    @property
    def target(self) -> FieldName | None: ...
    @property
    def status(self) -> MappingStatus: ...


class Cell(Protocol):
    """What a choice about a value is compared with."""

    @property
    def id(self) -> int: ...
    @property
    def target_id(self) -> int | None: ...
    @property
    def target_name(self) -> str | None: ...
    @property
    def create(self) -> bool: ...
    @property
    def status(self) -> MappingStatus: ...


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose for one column or value."""

    chosen: str
    seen: str
    """What the page showed."""

    @property
    def changed(self) -> bool:
        """The person chose something else than the page showed."""
        return meaning(self.chosen) != meaning(self.seen)


def choices_of(form: Form, kind: str) -> dict[int, Choice]:
    """Choices of a form by id of column or value.

    Args:
        form: As it was sent.
        kind: `column` or `value`.
    """
    found: dict[int, Choice] = {}
    for name, seen in form.fields.items():
        prefix, _, key = name.partition("-")
        if prefix != f"seen_{kind}" or not is_id(key):
            continue
        found[int(key)] = Choice(form.fields.get(f"{kind}-{key}", seen), seen)
    return found


def is_id(text: str) -> bool:
    """Whether a field of a form names a number of ours."""
    return text.isascii() and text.isdecimal() and len(text) < _DIGITS


def shown_column(column: Column) -> str:
    """The choice for what a column means now."""
    return LEFT_OUT if column.status is MappingStatus.IGNORED else column.target or OPEN


def shown_cell(cell: Cell) -> str:
    """The choice for what a value means now."""
    if cell.status is MappingStatus.IGNORED:
        return LEFT_OUT
    if cell.create:
        return CREATE
    if cell.target_id is not None:
        return f"{cell.target_id}:{cell.target_name or ''}"
    return OPEN


def column_decisions(
    columns: Sequence[Column], choices: Mapping[int, Choice]
) -> Sequence[ColumnDecision]:
    """What the choices change in the columns.

    Raises:
        Refused: A choice is none that a page offers.
    """
    decisions: list[ColumnDecision] = []
    for column in columns:
        choice = choices.get(column.id)
        if choice is None or not choice.changed:
            continue
        if choice.chosen in (OPEN, shown_column(column)):
            continue
        if choice.chosen == LEFT_OUT:
            decisions.append(ColumnDecision(id=column.id, ignore=True))
        else:
            decisions.append(_column_decision(column.id, choice.chosen))
    return decisions


def taken_away(columns: Sequence[Column], decisions: Sequence[ColumnDecision]) -> tuple[str, ...]:
    """Headers of columns that lose their field to another one without an explicit choice."""
    decided = {decision.id for decision in decisions}
    wanted = {decision.target for decision in decisions if decision.target}
    return tuple(
        column.header for column in columns if column.target in wanted and column.id not in decided
    )


def cell_decisions(cells: Sequence[Cell], choices: Mapping[int, Choice]) -> Sequence[CellDecision]:
    """What the choices change in the values.

    Raises:
        Refused: A choice is none that a page offers.
    """
    decisions: list[CellDecision] = []
    for cell in cells:
        choice = choices.get(cell.id)
        if choice is None or not choice.changed:
            continue
        if meaning(choice.chosen) in (OPEN, meaning(shown_cell(cell))):
            continue
        decisions.append(_cell_decision(cell.id, meaning(choice.chosen)))
    return decisions


def chosen_name(choice: str) -> str:
    """Name of the candidate that was chosen."""
    return choice.partition(":")[2]


def _column_decision(id: int, field: str) -> ColumnDecision:
    try:
        return ColumnDecision(id=id, target=field)
    except ValidationError as error:
        raise _unknown_choice() from error


def _cell_decision(id: int, chosen: str) -> CellDecision:
    if chosen == LEFT_OUT:
        return CellDecision(id=id, ignore=True)
    if chosen == CREATE:
        return CellDecision(id=id, create=True)
    try:
        return CellDecision(id=id, target_id=int(chosen))
    except ValueError as error:
        raise _unknown_choice() from error


def _unknown_choice() -> Refused:
    return Refused(gettext("a choice is not one of those on the page; load it again"))


def meaning(choice: str) -> str:
    """A choice without the name that only people need."""
    return choice.partition(":")[0]


_DIGITS: Final = 16
_LEFT_EMPTY: Final = {SAME_BIB.name: N_("Import the row without the bib")}
_CREATED: Final = {PERSON.name: N_("Another person"), SAME_BIB.name: N_("Both have this bib")}
"""What it is called to answer a question with “create”, by field."""


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
    holders = {each.target: (each.id, each.header) for each in columns if each.target}
    lines: list[ColumnLine] = []
    for column in columns:
        shown = shown_column(column)
        chosen, note = _merged(
            shown,
            choices.get(column.id),
            lambda choice: _column_words(choice, titles),
            trail.about(column.header),
        )
        is_open = column.status is MappingStatus.UNMATCHED
        is_matched = column.target and column.status is MappingStatus.AUTO_MATCHED
        lines.append(
            ColumnLine(
                column.id,
                column.header,
                column.samples,
                COLUMN_STATUS[column.status],
                shown,
                chosen,
                field_options(fields, column.id, holders),
                is_open,
                note=note,
                suggestions=[
                    Suggestion(it.name, titles.get(it.name, it.name), it.score, it.why)
                    for it in column.alternatives
                    if is_open
                ],
                score=column.confidence if is_matched else None,
                why=column.why,
                blanks=column.blanks,
            )
        )
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


SHOWS: Final = ("open", "all")
LEAST: Final = 90
"""Percent that a suggestion has at least, unless a person says otherwise."""


@dataclass(frozen=True, slots=True)
class ValuePlace:
    """A page of the values, or of those that match."""

    show: str = "open"
    """`open` or `all`."""
    page: int = 0
    field: str = ""
    """"": of every field."""
    text: str = ""
    """Part of the value."""

    @property
    def status(self) -> MappingStatus | None:
        """What is decided about the values; None: whatever it is."""
        return MappingStatus.UNMATCHED if self.show == "open" else None

    @property
    def wanted(self) -> ValueFilter:
        """The values that match, of all pages."""
        return ValueFilter(self.field or None, self.status, None, self.text)

    @property
    def query(self) -> str:
        """Of its address."""
        return urlencode(
            {"show": self.show, "page": self.page, "field": self.field, "text": self.text}
        )


FIRST: Final = ValuePlace()


def shown(form: Form) -> ValuePlace:
    """What the form showed when it was sent."""
    show, page = form.text("show"), form.text("page")
    if show not in SHOWS or not is_id(page):
        return ValuePlace()
    return ValuePlace(show, int(page), form.text("shownField", 64), form.text("shownText", 200))


def turned(form: Form) -> ValuePlace:
    """What is wanted next: another page, other values, or the same.

    Raises:
        Refused: The page to jump to is not a number.
    """
    now = shown(form)
    field, text = form.text("field", 64), form.text("text", 200)
    button, _, page = form.text("turn").partition(":")
    match button:
        case "clear":
            return ValuePlace(now.show)
        case "jump":
            wanted = ValuePlace(now.show, max((form.whole("jump") or 1) - 1, 0), field, text)
        case "open" | "all" if is_id(page):
            wanted = ValuePlace(button, int(page), field, text)
        case "filter":
            wanted = ValuePlace(now.show, 0, field, text)
        case _:
            return now
    is_other = (field, text) != (now.field, now.text)
    return ValuePlace(wanted.show, 0, field, text) if is_other else wanted


def rule_of(form: Form) -> CellRule | None:
    """The answer of the form for all values that it shows, of all pages: `each:ignore`.

    Raises:
        Refused: It lacks what the answer needs.
    """
    word, _, answer = form.text("do").partition(":")
    if word != "each":
        return None
    place = shown(form)
    field = form.text("eachField", 64) or None
    rule = {"field": field, "text": place.text, "status": place.status}
    match answer:
        case "confirm":
            least = form.whole("least")
            if least is None or least > 100:
                raise Refused(gettext("say from which percentage on: a number from 0 to 100"))
            rule |= {"confirm": True, "min_score": least / 100}
        case "ignore" | "create" | "reset":
            rule |= {answer: True}
        case "target":
            chosen = meaning(form.text("value-0"))
            if not is_id(chosen):
                raise Refused(gettext("search for what all of them mean, and choose it"))
            rule |= {"target_id": int(chosen)}
        case _:
            return None
    with refused_if_invalid():
        return CellRule.model_validate(rule)
