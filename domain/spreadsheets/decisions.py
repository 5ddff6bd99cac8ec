"""What may be answered to a spreadsheet import, and what an answer makes of its columns.

Plain functions over contracts: nothing here knows of a running workflow.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from contracts.base import Contract
from contracts.errors import INVALID_DECISION, STILL_OPEN, VERSION_CONFLICT, WRONG_STATE
from contracts.notices import NextStep
from contracts.spreadsheets import (
    CellDecision,
    CellSummary,
    ColumnDecision,
    ColumnMapping,
    DecisionRecord,
    FieldFacts,
    MappingsAnswer,
    MappingStatus,
    Patience,
    ReviewCounts,
    SpreadsheetProgress,
    SpreadsheetState,
)
from domain.notices import LAST_REMINDERS
from domain.spreadsheets import review_guidance
from domain.spreadsheets.plain_words import field_titles, titled
from domain.spreadsheets.standing import standing

CHOICES: Final = "targetEntityId, confirm, ignore, create and reset"
"""What can be decided about a value."""
_NAMED: Final = 10
"""Fields or values that a refusal names."""


class AnswerRefused(Exception):
    """The answer cannot be accepted and changes nothing; the message says why.

    Args:
        message: For the person who answered.
        type: One of the refusals named in `contracts.errors`.
        details: What the caller can work with.
    """

    def __init__(self, message: str, type: str, *details: Contract) -> None:
        super().__init__(message)
        self.type = type
        self.details = details


def decide_columns(
    columns: Sequence[ColumnMapping],
    fields: Sequence[FieldFacts],
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
    fields: Sequence[FieldFacts],
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
            raise _invalid(f"column {decision.id}: there is no field {decision.target}")
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


def _refuse_shared(columns: Sequence[ColumnMapping], fields: Sequence[FieldFacts]) -> None:
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
        names = " or ".join(map(standing, wanted))
        said = f"the import {standing(state)}; this answer is for one that {names}"
        raise AnswerRefused(said, WRONG_STATE)


def refuse_open_fields(answer: MappingsAnswer, titles: Mapping[str, str]) -> None:
    """For answers that end the mapping of columns; fields are named by their titles.

    Raises:
        AnswerRefused: `StillOpen`, with the answer as its detail.
    """
    if answer.missing_fields:
        named = ", ".join(titled(answer.missing_fields[:_NAMED], titles))
        raise AnswerRefused(f"required fields have no column yet: {named}", STILL_OPEN, answer)


def refuse_open_values(answer: MappingsAnswer, titles: Mapping[str, str]) -> None:
    """For answers that end the mapping of values; fields are named by their titles.

    Raises:
        AnswerRefused: `StillOpen`, with the answer as its detail.
    """
    if answer.cells.open:
        count = answer.cells.open
        values = "1 value is" if count == 1 else f"{count:,} values are"
        problem = f"{values} not decided yet: {named(answer, titles)}"
        raise AnswerRefused(problem, STILL_OPEN, answer)


def named(answer: MappingsAnswer, titles: Mapping[str, str]) -> str:
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
        return review_guidance.awaited(review)
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
        return review_guidance.next_steps(uuid)
    word = "columns" if state is SpreadsheetState.COLUMN_MAPPING else "values"
    command = "docflow spreadsheets"
    return (
        NextStep(does=f"see and decide its {word}", command=f"{command} {word} {uuid}"),
        NextStep(does="confirm them and continue", command=f"{command} confirm-{word} {uuid}"),
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
        return review_guidance.details(run, state, since, _cell(assignee), review)
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
