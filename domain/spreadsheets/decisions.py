"""What may be answered to a spreadsheet import, and what an answer makes of its columns.

Plain functions over contracts: nothing here knows of a running workflow.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
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
    SpreadsheetProgress,
    SpreadsheetState,
)
from domain.notices import LAST_REMINDERS

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


def missing_fields(
    columns: Sequence[ColumnMapping], fields: Sequence[FieldFacts]
) -> tuple[str, ...]:
    """Required fields that no column has."""
    taken = {column.target for column in columns}
    return tuple(field.name for field in fields if field.required and field.name not in taken)


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
    after: list[ColumnMapping] = []
    trail: list[DecisionRecord] = []
    for column in columns:
        decision = wanted.get(column.id)
        if decision is not None:
            after.append(_decided(column, decision))
            trail.append(_line(column, after[-1], by, at))
        elif column.target in given and column.status is MappingStatus.AUTO_MATCHED:
            after.append(
                column.model_copy(
                    update={"target": None, "status": MappingStatus.UNMATCHED, "confidence": 0.0}
                )
            )
        else:
            after.append(column)
    _refuse_shared(after)
    return tuple(after), tuple(trail)


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
        chosen = [decision.target is not None, decision.confirm, decision.ignore]
        if sum(chosen) != 1:
            raise _invalid(
                f"column {decision.id} needs exactly one of targetField, confirm and ignore"
            )
        if decision.target is not None and decision.target not in names:
            raise _invalid(f"column {decision.id}: there is no field {decision.target}")
        if decision.confirm and column.target is None:
            raise _invalid(
                f"column {decision.id} ({column.header!r}) has no match to confirm; "
                "name a targetField or ignore it"
            )


def refuse_malformed_values(decisions: Sequence[CellDecision]) -> None:
    """For decisions about values; whether their candidates exist is not known here.

    Raises:
        AnswerRefused: `InvalidDecision`.
    """
    for decision in decisions:
        chosen = [
            decision.target_id is not None,
            decision.confirm,
            decision.ignore,
            decision.create,
        ]
        if sum(chosen) != 1:
            raise _invalid(
                f"value {decision.id} needs exactly one of targetEntityId, confirm, ignore and "
                "create"
            )


def _refuse_shared(columns: Sequence[ColumnMapping]) -> None:
    counts = Counter(column.target for column in columns if column.target)
    for target, count in counts.items():
        if count > 1:
            headers = " and ".join(repr(c.header) for c in columns if c.target == target)
            raise _invalid(f"two columns cannot fill {target}: {headers}; ignore one of them")


def _decided(column: ColumnMapping, decision: ColumnDecision) -> ColumnMapping:
    if decision.ignore:
        update = {"target": None, "status": MappingStatus.IGNORED, "confidence": 1.0}
    else:
        target = decision.target or column.target
        update = {"target": target, "status": MappingStatus.MANUAL_MATCHED, "confidence": 1.0}
    return column.model_copy(update=update)


def _line(before: ColumnMapping, after: ColumnMapping, by: str, at: datetime) -> DecisionRecord:
    return DecisionRecord(
        kind="column",
        subject=before.header,
        decision=after.target or "ignored",
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
        names = " or ".join(wanted)
        raise AnswerRefused(f"the import is {state}; this answer needs {names}", WRONG_STATE)


def refuse_open_fields(answer: MappingsAnswer) -> None:
    """For answers that end the mapping of columns.

    Raises:
        AnswerRefused: `StillOpen`, with the answer as its detail.
    """
    if answer.missing_fields:
        named = ", ".join(answer.missing_fields[:_NAMED])
        raise _still_open(f"required fields have no column yet: {named}", answer)


def refuse_open_values(answer: MappingsAnswer) -> None:
    """For answers that end the mapping of values.

    Raises:
        AnswerRefused: `StillOpen`, with the answer as its detail.
    """
    if answer.cells.open:
        raise _still_open(
            f"{answer.cells.open} values are not decided yet: {named(answer)}", answer
        )


def named(answer: MappingsAnswer) -> str:
    """The first open values, for a sentence."""
    first = answer.cells.first_open[:_NAMED]
    return ", ".join(f"{value.field} {value.value!r}" for value in first)


def _still_open(message: str, answer: MappingsAnswer) -> AnswerRefused:
    return AnswerRefused(message, STILL_OPEN, answer)


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


def awaited(state: SpreadsheetState, missing: Sequence[str], cells: CellSummary) -> str:
    """What a run waits for, in a sentence."""
    if state is SpreadsheetState.COLUMN_MAPPING:
        if missing:
            return f"required fields have no column yet: {', '.join(missing[:_NAMED])}"
        return "the matches of its columns have to be confirmed"
    if cells.open:
        return f"{cells.open} values have no meaning yet"
    return "the meanings of its values have to be confirmed"


def next_steps(uuid: str, state: SpreadsheetState) -> tuple[NextStep, ...]:
    """Commands that answer a run which waits for a person."""
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
) -> str:
    """Markdown for the Web UI: what is awaited, from whom, and commands that answer it."""
    if state is SpreadsheetState.COLUMN_MAPPING:
        update, confirm = "update_column_mappings", "confirm_column_mappings"
        example = '{"by":"me","decisions":[{"id":1,"target":"LAST_NAME"},{"id":2,"ignore":true}]}'
    else:
        update, confirm = "update_cell_mappings", "confirm_cell_mappings"
        first = cells.first_open[0].id if cells.first_open else 1
        example = f'{{"by":"me","decisions":[{{"id":{first},"ignore":true}}]}}'
    rows = "".join(
        f"| {value.id} | {value.field} | {_cell(value.value)} | {value.rows} |\n"
        for value in cells.first_open[:_NAMED]
    )
    table = f"\n| id | field | value | rows |\n|---|---|---|---|\n{rows}" if rows else ""
    return (
        f"**{state}** since {since:%Y-%m-%d %H:%M} UTC, waits for {_cell(assignee)}: "
        f"{awaited(state, missing, cells)}\n{table}\n"
        f"- look: `temporal workflow query --workflow-id {run} --name "
        f"{'column' if state is SpreadsheetState.COLUMN_MAPPING else 'cell'}_mappings`\n"
        f"- answer: `temporal workflow update execute --workflow-id {run} --name {update} "
        f"--input '{example}'`\n"
        f"- confirm: `temporal workflow update execute --workflow-id {run} --name {confirm} "
        f'--input \'{{"by":"me"}}\'`\n'
        f"- stop: `temporal workflow update execute --workflow-id {run} --name cancel "
        f'--input \'{{"by":"me"}}\'`\n'
    )


def _cell(text: str) -> str:
    """Text from a file must not change the table it stands in."""
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ")
