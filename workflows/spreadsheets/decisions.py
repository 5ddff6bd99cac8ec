"""What may be answered to a spreadsheet import, and what an answer makes of its columns and values.

What may be answered to a spreadsheet import, and what an answer makes of its columns.

Plain functions over contracts: nothing here knows of a running workflow.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Protocol

from workflows.shared.contracts import Contract
from workflows.shared.declared_fields import nearest
from workflows.shared.errors import INVALID_DECISION, STILL_OPEN, VERSION_CONFLICT, WRONG_STATE
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.shared.notifications import LAST_REMINDERS, NextStep
from workflows.spreadsheets import people, reviews
from workflows.spreadsheets.fields import Entity
from workflows.spreadsheets.mappings import (
    Alternative,
    CellDecision,
    CellDecisions,
    CellRule,
    CellSummary,
    ColumnDecision,
    ColumnMapping,
    DecisionRecord,
    FieldMetadata,
    MappingsAnswer,
    MappingStatus,
    ReviewCounts,
    SpreadsheetState,
)
from workflows.spreadsheets.names import QUESTIONS, REASON, SAME_BIB
from workflows.spreadsheets.runs import Patience, SpreadsheetProgress, status_label


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
    def header(self) -> str: ...
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


_RECORDS: Final = MappingProxyType(
    {
        "persons": "Person",
        "event_participants": "Event participant",
        "memberships": "Membership",
        "race_results": "Race result",
        "custom_list_values": "Choice from a list",
    }
)
_COLUMNS: Final = MappingProxyType(
    {"person_key": "Person", "person_id": "Person", "custom_list_item_id": "Choice"}
)


def words(name: str) -> str:
    """A name of programs in plain words: `First name` for FIRST_NAME."""
    return name.replace("_", " ").strip().capitalize()


def record_title(table: str) -> str:
    """What a row of a table is to people."""
    return _RECORDS.get(table) or words(table)


def column_title(column: str) -> str:
    """What a column of a table is to people, where no field is known that fills it."""
    return _COLUMNS.get(column) or words(column.removesuffix("_id"))


def column_titles(fields: Iterable[FieldSpec]) -> Mapping[tuple[str, str], FieldSpec]:
    """The field that fills each column, by table and column; columns that several fill left out."""
    found: dict[tuple[str, str], FieldSpec] = {}
    shared: set[tuple[str, str]] = set()
    for each in fields:
        place = each.table, each.column
        if found.setdefault(place, each) is not each:
            shared.add(place)
    return {place: each for place, each in found.items() if place not in shared}


def shown_value(field: FieldSpec | None, value: str | None) -> str | None:
    """A stored value as people write it: a time in hours, minutes and seconds."""
    if field is None or value is None or field.kind is not ColumnKind.DURATION:
        return value
    if not value.isascii() or not value.isdecimal():
        return value
    whole, fraction = divmod(int(value), 1000)
    minutes, seconds = divmod(whole, 60)
    shown = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    return f"{shown}.{fraction:03}" if fraction else shown


def field_titles(fields: Iterable[FieldMetadata]) -> Mapping[str, str]:
    """Title of each field, by name; runs of earlier releases know no titles."""
    return {each.name: each.title or words(each.name) for each in fields}


def titled(names: Iterable[str], titles: Mapping[str, str]) -> Sequence[str]:
    """Titles of fields; plain words for one that is not known."""
    return [titles.get(name) or words(name) for name in names]


CHOICES: Final = "targetEntityId, confirm, ignore, create and reset"
"""What can be decided about a value."""
_NAMED: Final = 10
"""Fields or values that a refusal names."""


class AnswerRefused(Exception):
    """The answer cannot be accepted and changes nothing; the message says why.

    Args:
        message: For the person who answered.
        type: One of the refusals named in `workflows.shared.errors`.
        details: What the caller can work with.
    """

    def __init__(self, message: str, type: str, *details: Contract) -> None:
        super().__init__(message)
        self.type = type
        self.details = details


def decide_columns(
    columns: Sequence[ColumnMapping],
    fields: Sequence[FieldMetadata],
    decisions: Sequence[ColumnDecision],
    by: str,
    at: datetime,
) -> tuple[tuple[ColumnMapping, ...], tuple[DecisionRecord, ...]]:
    """Take decisions about columns, all or none.

    A field that is given to a column is taken from the one that was matched to it by itself.

    Returns:
        The columns afterwards, and the trail.

    Raises:
        AnswerRefused: `InvalidDecision`; the message says which and why.
    """
    _refuse_malformed(columns, fields, decisions)
    wanted = {decision.id: decision for decision in decisions}
    given = {decision.target for decision in decisions if decision.target}
    taken_back = {decision.id for decision in decisions if decision.reset}
    # What was taken away from a column by a choice comes back with it.
    columns = [_as_matched(c) if c.id in taken_back else c for c in columns]
    after: list[ColumnMapping] = []
    trail: list[DecisionRecord] = []
    for column in columns:
        decision = wanted.get(column.id)
        if decision is not None:
            after.append(column if decision.reset else _decided(column, decision))
            trail.append(_line(column, after[-1], by, at))
        elif column.target in given and column.status is MappingStatus.AUTO_MATCHED:
            after.append(_noted(column).model_copy(update=_OPEN))
        else:
            after.append(column)
    after = _returned(after)
    _refuse_shared(after, fields)
    return tuple(after), tuple(trail)


_OPEN: Final = MappingProxyType(
    {"target": None, "status": MappingStatus.UNMATCHED, "confidence": 0.0, "why": ""}
)


def _noted(column: ColumnMapping) -> ColumnMapping:
    """A column that knows what docflow had matched."""
    if column.status is not MappingStatus.AUTO_MATCHED:
        return column
    return column.model_copy(
        update={"matched": column.target, "matched_confidence": column.confidence}
    )


def _as_matched(column: ColumnMapping) -> ColumnMapping:
    """A column without the decision about it; its match returns where the field is free."""
    if column.status is MappingStatus.AUTO_MATCHED:
        return column
    return column.model_copy(update=_OPEN)


def _returned(columns: Sequence[ColumnMapping]) -> list[ColumnMapping]:
    """Open columns get back what docflow had matched, where no other column has the field."""
    taken = {None, *(column.target for column in columns)}
    return [
        column.model_copy(
            update={
                "status": MappingStatus.AUTO_MATCHED,
                "target": column.matched,
                "confidence": column.matched_confidence,
            }
        )
        if column.status is MappingStatus.UNMATCHED and column.matched not in taken
        else column
        for column in columns
    ]


def left_out(columns: Sequence[ColumnMapping]) -> tuple[str, ...]:
    """Headers of columns that fill no field."""
    return tuple(column.header for column in columns if column.target is None)


def _refuse_malformed(
    columns: Sequence[ColumnMapping],
    fields: Sequence[FieldMetadata],
    decisions: Sequence[ColumnDecision],
) -> None:
    by_id = {column.id: column for column in columns}
    names = {field.name for field in fields}
    seen: set[int] = set()
    for decision in decisions:
        column = by_id.get(decision.id)
        if column is None:
            raise _invalid(f"there is no column {decision.id}; there are 1 to {len(columns)}")
        if decision.id in seen:
            raise _invalid(f"column {decision.id} is decided twice")
        seen.add(decision.id)
        chosen = (decision.confirm, decision.ignore, decision.reset)
        if sum(chosen) + (decision.target is not None) != 1:
            raise _invalid(
                f"column {decision.id} needs exactly one of targetField, confirm, ignore and reset"
            )
        if decision.target is not None and decision.target not in names:
            near = nearest(decision.target, names)
            raise _invalid(f"column {decision.id}: there is no field {decision.target}; {near}")
        if decision.confirm and column.target is None:
            raise _invalid(
                f"column {decision.id} ({column.header!r}) has no match to confirm; "
                "name a targetField or ignore it"
            )


def has_one_choice(decision: CellDecision) -> bool:
    """Whether a decision says one thing, and not several or none."""
    choices = (decision.confirm, decision.ignore, decision.create, decision.reset)
    return sum(choices) + (decision.target_id is not None) == 1


def refuse_malformed_values(decisions: Sequence[CellDecision]) -> None:
    """For decisions about values; whether their candidates exist is not known here.

    Raises:
        AnswerRefused: `InvalidDecision`.
    """
    for decision in decisions:
        if not has_one_choice(decision):
            raise _invalid(f"value {decision.id} needs exactly one of {CHOICES}")
        if decision.for_all and not (decision.confirm or decision.ignore or decision.create):
            raise _invalid(
                f"value {decision.id}: forAll goes with confirm, ignore or create; what one value "
                "means is not what all mean"
            )


def _refuse_shared(columns: Sequence[ColumnMapping], fields: Sequence[FieldMetadata]) -> None:
    for target, count in Counter(column.target for column in columns).items():
        if target and count > 1:
            headers = " and ".join(repr(c.header) for c in columns if c.target == target)
            [title] = titled([target], field_titles(fields))
            raise _invalid(f"two columns cannot fill {title}: {headers}; leave one of them out")


def _decided(column: ColumnMapping, decision: ColumnDecision) -> ColumnMapping:
    column = _noted(column)
    if decision.ignore:
        update = {"target": None, "status": MappingStatus.IGNORED, "confidence": 1.0}
    else:
        target = decision.target or column.target
        update = {"target": target, "status": MappingStatus.MANUAL_MATCHED, "confidence": 1.0}
    return column.model_copy(update=update | {"why": ""})


def _line(before: ColumnMapping, after: ColumnMapping, by: str, at: datetime) -> DecisionRecord:
    return DecisionRecord(
        kind="column",
        subject=before.header,
        decision=after.target
        or ("ignored" if after.status is MappingStatus.IGNORED else "taken back"),
        by=by,
        at=at,
        confidence=before.confidence if before.target else None,
        alternatives=before.alternatives,
    )


def _invalid(message: str) -> AnswerRefused:
    return AnswerRefused(message, INVALID_DECISION)


def refuse_other_version(expected: int | None, version: int) -> None:
    """For answers that are based on mappings as a person saw them.

    Raises:
        AnswerRefused: `VersionConflict`.
    """
    if expected is not None and expected != version:
        raise AnswerRefused(
            f"the mappings are at version {version} now, not {expected}: another person has "
            "answered meanwhile; look at them again",
            VERSION_CONFLICT,
        )


def refuse_other_state(state: SpreadsheetState, wanted: Sequence[SpreadsheetState]) -> None:
    """For answers that only some states take.

    Raises:
        AnswerRefused: `WrongState`.
    """
    if state not in wanted:
        names = " or ".join(map(status_label, wanted))
        said = f"the import {status_label(state)}; this answer is for one that {names}"
        raise AnswerRefused(said, WRONG_STATE)


def refuse_open_fields(answer: MappingsAnswer, titles: Mapping[str, str]) -> None:
    """For answers that end the mapping of columns; fields are named by their titles.

    Raises:
        AnswerRefused: `StillOpen`, with the answer as its detail.
    """
    if answer.missing_fields:
        named = ", ".join(titled(answer.missing_fields[:_NAMED], titles))
        raise AnswerRefused(f"required fields have no column yet: {named}", STILL_OPEN, answer)


def open_columns(columns: Sequence[Column]) -> tuple[str, ...]:
    """Headers of columns that are neither mapped nor left out by a person."""
    return tuple(each.header for each in columns if each.status is MappingStatus.UNMATCHED)


def refuse_open_columns(answer: MappingsAnswer, headers: Sequence[str]) -> None:
    """For answers that end the mapping of columns of a type which refuses further columns.

    Raises:
        AnswerRefused: `StillOpen`, with the answer as its detail.
    """
    if headers:
        listed = ", ".join(map(repr, headers[:_NAMED]))
        more = f" and {len(headers) - _NAMED} more" if len(headers) > _NAMED else ""
        raise AnswerRefused(
            f"columns that mean no field: {listed}{more}. This type refuses them: say what each "
            "means, or leave it out expressly",
            *(STILL_OPEN, answer),
        )


def refuse_open_values(answer: MappingsAnswer, titles: Mapping[str, str]) -> None:
    """For answers that end the mapping of values; fields are named by their titles.

    Raises:
        AnswerRefused: `StillOpen`, with the answer as its detail.
    """
    if answer.cells.open:
        count = answer.cells.open
        values = "1 value is" if count == 1 else f"{count:,} values are"
        problem = f"{values} not decided yet: {open_value_names(answer, titles)}"
        raise AnswerRefused(problem, STILL_OPEN, answer)


def open_value_names(answer: MappingsAnswer, titles: Mapping[str, str]) -> str:
    """The first open values, for a sentence."""
    first = answer.cells.first_open[:_NAMED]
    fields = titled((value.field for value in first), titles)
    return ", ".join(f"{title} {value.value!r}" for title, value in zip(fields, first, strict=True))


class Nudge(StrEnum):
    """What happens next while no answer comes."""

    REMINDER = "reminder"
    ESCALATION = "escalation"
    ABANDONED = "abandoned"


def next_nudge(
    progress: SpreadsheetProgress, patience: Patience, *, warns: bool = True
) -> tuple[Nudge, datetime]:
    """What happens next to a run that waits, and when, if no answer comes.

    Args:
        progress: Of the run.
        patience: How long it waits.
        warns: Before it gives up it has reminded people twice, however rarely it does so.
    """
    assert progress.touched is not None
    since = progress.touched
    reminder = patience.remind_after + progress.reminders * patience.remind_every
    if warns:
        warnings = LAST_REMINDERS[progress.reminders : progress.reminders + 1]
        reminder = min([reminder, *(int(part * patience.abandon_after) for part in warnings)])
    due = [(patience.abandon_after, Nudge.ABANDONED), (reminder, Nudge.REMINDER)]
    if not progress.escalated:
        due.insert(1, (patience.escalate_after, Nudge.ESCALATION))
    seconds, nudge = min(due, key=lambda entry: entry[0])
    return nudge, since + timedelta(seconds=seconds)


def awaited(
    state: SpreadsheetState,
    missing: Sequence[str],
    cells: CellSummary,
    review: ReviewCounts | None = None,
) -> str:
    """What a run waits for, in a sentence."""
    if review is not None:
        return reviews.awaited(review)
    if state is SpreadsheetState.COLUMN_MAPPING:
        if missing:
            return f"required fields have no column yet: {', '.join(missing[:_NAMED])}"
        return "the matches of its columns have to be confirmed"
    if cells.open:
        return f"{cells.open} values have no meaning yet"
    return "the meanings of its values have to be confirmed"


def next_steps(
    uuid: str, state: SpreadsheetState, review: ReviewCounts | None = None
) -> tuple[NextStep, ...]:
    """Commands that answer a run which waits for a person."""
    if review is not None:
        return reviews.next_steps(uuid)
    word = "columns" if state is SpreadsheetState.COLUMN_MAPPING else "values"
    command = "docflow upload"
    return (
        NextStep(does=f"see and decide its {word}", command=f"{command} {word} {uuid}"),
        NextStep(does="confirm them and continue", command=f"{command} confirm {uuid} {word}"),
    )


def details(
    run: str,
    state: SpreadsheetState,
    since: datetime,
    assignee: str,
    missing: Sequence[str],
    cells: CellSummary,
    review: ReviewCounts | None = None,
) -> str:
    """Markdown for the Web UI: what is awaited, from whom, and commands that answer it."""
    if state is SpreadsheetState.COLUMN_MAPPING:
        update, confirm, looks = (
            "update_column_mappings",
            "confirm_column_mappings",
            ("column_mappings",),
        )
        choices = '{"id":<column>,"target":<"FIELD">},{"id":<column>,"ignore":true}'
    else:
        update, confirm, looks = (
            "update_cell_mappings",
            "confirm_cell_mappings",
            ("cell_mappings", "candidates"),
        )
        choices = '{"id":<value>,"target_id":<candidate>},{"id":<value>,"ignore":true}'
    if review is not None:
        return reviews.details(run, state, since, _cell(assignee), review)
    rows = "".join(
        f"| {value.id} | {value.field} | {_cell(value.value)} | {value.rows} |\n"
        for value in cells.first_open[:_NAMED]
    )
    table = f"\n| id | field | value | rows |\n|---|---|---|---|\n{rows}" if rows else ""
    look = "".join(
        f"- look: `temporal workflow query --workflow-id {run} --name {name}`\n" for name in looks
    )
    command = f"temporal workflow update execute --workflow-id {run} --name"
    return (
        f"**{state}** since {since:%Y-%m-%d %H:%M} UTC, waits for {_cell(assignee)}: "
        f"{awaited(state, missing, cells)}\n{table}\n{look}"
        "\nPut your own choices in the place of what stands in angle brackets; as they are, these "
        "commands change nothing:\n\n"
        f'- answer: `{command} {update} --input \'{{"by":<"you">,"decisions":[{choices}]}}\'`\n'
        f'- confirm: `{command} {confirm} --input \'{{"by":<"you">}}\'`\n'
        f'- stop: `{command} cancel --input \'{{"by":<"you">}}\'`\n'
    )


def _cell(text: str) -> str:
    """Text from a file must not change the table it stands in."""
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")


REASONS: Final = MappingProxyType(
    {
        **{kind.value: reason for kind, reason in people.REASONS.items()},
        SAME_BIB.name: REASON,
    }
)
"""Kind of a question to what makes it unclear, in words."""


def refuse_malformed_answer(answer: CellDecisions) -> None:
    """For decisions and rules about values; whether their candidates exist is not known here.

    Raises:
        AnswerRefused: `InvalidDecision`.
    """
    if not answer.decisions and not answer.rules:
        raise AnswerRefused("the answer has neither decisions nor rules", INVALID_DECISION)
    refuse_malformed_values(answer.decisions)
    for place, rule in enumerate(answer.rules, start=1):
        if reason := rule_problem(rule):
            raise AnswerRefused(f"rule {place}: {reason}", INVALID_DECISION)


def has_one_answer(rule: CellRule) -> bool:
    """Whether a rule says one thing, and not several or none."""
    answers = (rule.confirm, rule.ignore, rule.create, rule.reset)
    return sum(answers) + (rule.target_id is not None) == 1


def rule_problem(rule: CellRule) -> str | None:
    """Why a rule says nothing, or too much; None: it is well formed."""
    if not has_one_answer(rule):
        return f"needs exactly one of {CHOICES}"
    if (rule.create or rule.target_id is not None) and rule.field is None:
        return "name the field whose values are meant"
    if rule.min_score and not rule.confirm:
        return "a least score goes with confirm"
    if rule.question is not None and (rule.target_id is not None or rule.reset):
        return "a question about people takes confirm, ignore or create"
    return None


def check_rule(
    place: int,
    rule: CellRule,
    fields: Mapping[str, FieldSpec],
    candidates: Mapping[str, Mapping[int, Entity]],
) -> str | None:
    """Why a rule cannot be applied; None: it can, whatever it matches.

    Args:
        place: Of the rule in its answer, from 1.
        rule: One answer for many values.
        fields: Those whose values refer to other tables, by name.
        candidates: What the values of a field may mean: kind of rows to rows by id.
    """
    if rule.field is None:
        return None
    field = fields.get(rule.field)
    if field is None or field.resolver is None:
        return f"rule {place}: values of {rule.field} refer to nothing"
    if rule.target_id is not None and field.name in QUESTIONS:
        return f"rule {place}: not every question is about one person; answer them by themselves"
    if rule.create and not field.creates:
        return f"rule {place}: {field.title} takes what is there already; leave the values empty"
    if rule.target_id is not None and rule.target_id not in candidates.get(field.resolver, {}):
        return (
            f"rule {place}: there is no {field.title} {rule.target_id} to choose; "
            "take one of the candidates"
        )
    return None


def rule_for_all(decision: CellDecision, field: str, question: str | None) -> CellRule:
    """The same answer for every open question of a kind."""
    return CellRule(
        field=field,
        question=question,
        confirm=decision.confirm,
        ignore=decision.ignore,
        create=decision.create,
    )


def described(rule: CellRule, count: int) -> str:
    """The values that a rule has answered, as the trail names them."""
    words = [f"{rule.field or 'every field'}: {count} values"]
    if rule.question is not None:
        kind = REASONS.get(rule.question, rule.question)
        words = [f"{rule.field}: {count} questions: {kind}"]
    if rule.text:
        words.append(f"with “{rule.text}”")
    if rule.min_score:
        words.append(f"of {rule.min_score:.0%} or more")
    return " ".join(words)


def answered(rule: CellRule, target: Entity | None) -> str:
    """The answer of a rule, as the trail names it."""
    words = {"confirmed": rule.confirm, "ignored": rule.ignore, "taken back": rule.reset}
    named = next((word for word, is_meant in words.items() if is_meant), "created")
    return named if target is None else target.name
