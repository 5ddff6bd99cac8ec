"""Values that refer to rows of other tables: which there are, and what people decide."""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.shared.failures import Heartbeater, WorkerThread, day_of_step, translate_failures
from activities.spreadsheets.analysis import (
    fields_of,
    load_context,
    people_answers,
    scope_of_rows,
    sheet_type_of,
    with_candidates,
)
from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.staging import (
    Plan,
    SheetReader,
    StagedRows,
    fetched_rows,
    keys_of_file,
)
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.types.people import IDENTIFYING, check_person
from activities.spreadsheets.validation import SourceRow
from activities.spreadsheets.value_mapping import ValueBook, check_decision, value_text
from adapters.ports.blobs import Blobs
from adapters.types.references import row_made
from workflows.shared.cells import Cell
from workflows.shared.contracts import Contract
from workflows.shared.errors import INVALID_DECISION
from workflows.shared.fields import FieldSpec
from workflows.spreadsheets.decisions import check_rule
from workflows.spreadsheets.edits import Edits
from workflows.spreadsheets.fields import (
    Entity,
    FoundValue,
    SheetMark,
)
from workflows.spreadsheets.mappings import (
    CellDecision,
    CellMapping,
    CellRule,
    CellSummary,
    MappingStatus,
)
from workflows.spreadsheets.names import BIB, BIBS, QUESTIONS
from workflows.spreadsheets.people import FILE_ROWS, PEOPLE, PERSON
from workflows.spreadsheets.runs import CollectInput, DecideCells

DISTINCT_VALUES: Final = 10_000
"""Values of a field that are collected ahead; further ones are met while rows are processed."""
STEP_SECONDS: Final = 0.3
"""Rows and values are looked at for this long at a time: a cancellation request waits no longer."""
_ROWS_OF_A_LOOK: Final = 2_000
_VALUES_OF_A_LOOK: Final = 50


class ValueCollector:
    """Counts distinct values, then resolves them; blocking.

    Attributes:
        rows: Rows looked at so far.
        resolved: Values resolved so far.

    Args:
        path: The staged file.
        places: Field to the place of its column.
        book: Resolves the values, and has found them afterwards.
        left_out: Lines of rows that do not count.
    """

    def __init__(
        self,
        path: Path,
        places: Mapping[str, int],
        book: ValueBook,
        left_out: Collection[int] = (),
    ) -> None:
        self._staged = StagedRows(path)
        self._source = self._staged.read()
        self._places = places
        self._book = book
        self._left_out = left_out
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in places}
        self._pending: Iterator[tuple[str, str, int]] | None = None
        self.rows = 0
        self.resolved = 0

    def step(self) -> bool:
        """Work for a moment; return whether everything is done."""
        ends = time.monotonic() + STEP_SECONDS
        while time.monotonic() < ends:
            if self._pending is None:
                rows = list(islice(self._source, _ROWS_OF_A_LOOK))
                self._count(rows)
                if not rows:
                    self._pending = self._values()
            else:
                values = list(islice(self._pending, _VALUES_OF_A_LOOK))
                for name, text, count in values:
                    self._book.meaning(name, text, count)
                self.resolved += len(values)
                if not values:
                    return True
        return False

    def close(self) -> None:
        """Close the file."""
        self._staged.close()

    def _count(self, rows: Sequence[SourceRow]) -> None:
        self.rows += len(rows)
        if self._left_out:
            rows = [row for row in rows if row.line not in self._left_out]
        for name, place in self._places.items():
            known = self._counts[name]
            met = _distinct([row.cells[place] for row in rows if len(row.cells) > place])
            for text, count in met.items():
                if text in known or len(known) < DISTINCT_VALUES:
                    known[text] += count

    def _values(self) -> Iterator[tuple[str, str, int]]:
        for name, counts in self._counts.items():
            for text, count in counts.items():
                yield name, text, count


def _distinct(cells: Sequence[Cell]) -> Counter[str]:
    """Texts of cells, and how many there are of each; blanks left out."""
    counts: Counter[str] = Counter()
    if bool in set(map(type, cells)):
        # True equals 1: each has to become a text before they are counted.
        cells = [value_text(cell) for cell in cells]
    for cell, count in Counter(cells).items():
        if text := value_text(cell):
            counts[text] += count
    return counts


_SAVED_TOGETHER: Final = 1_000
_REASONS_NAMED: Final = 5


class ValuesCollected(Contract):
    """Heartbeat of `spreadsheets.collect_values`."""

    rows: int
    values: int


class SpreadsheetValues:
    """Collects values and takes decisions about them.

    Args:
        store: Tables.
        blobs: Where staged rows are.
        types: The import types there are.
        scratch: Folder for temporary files.
    """

    def __init__(
        self, store: SqlSpreadsheetStore, blobs: Blobs, types: SheetTypes, scratch: Path
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._types = types
        self._scratch = scratch

    @activity.defn(name="spreadsheets.collect_values")
    @translate_failures
    async def collect_values(self, work: CollectInput) -> CellSummary:
        """Find the distinct values of the columns that refer to other tables, and resolve them.

        A second run finds the same values; decisions that were made in between stay.

        Returns:
            Figures, and the first values without a known meaning.

        Raises:
            ApplicationError: See `activities.shared.failures`.
        """
        order = work.order
        fields = {each.name: each for each in await fields_of(self._store, self._types, order)}
        places = {
            column.target: column.index
            for column in work.columns
            if column.target in fields
            and column.status is not MappingStatus.IGNORED
            and fields[column.target].resolver is not None
        }
        context: ImportContext | None = None
        # Before the review: which rows are left out, and no corrections.
        edits = Edits(work.columns, await self._store.reviews.operations(order.uuid))
        async with Heartbeater() as heart:
            if places:
                context = await load_context(
                    self._store, self._types, order, day_of_step(), only=places
                )
                kind = await sheet_type_of(self._types, order)
                known = list(fields.values())
                own, referred = kind.own_references, kind.referred
                book = ValueBook(known, context, own=own, referred=referred)
                async with fetched_rows(self._blobs, work.staged, self._scratch) as path:
                    if book.own:
                        with closing(StagedRows(path)) as staged:
                            kept = (r for r in staged.read() if r.line not in edits.excluded)
                            book.note_own(keys_of_file(kind, work.columns, kept))
                    await _collect(ValueCollector(path, places, book, edits.excluded), heart)
                await self._save(order.uuid, book.take_found())
            if (await sheet_type_of(self._types, order)).is_about_people:
                await self._collect_people(work, list(fields.values()), edits, heart)
            summary = await self._store.cell_summary(order.uuid)
            if not summary.open or context is None:
                return summary
            return with_candidates(summary, fields.values(), context)

    async def _save(self, uuid: str, found: Sequence[FoundValue]) -> None:
        for start in range(0, len(found), _SAVED_TOGETHER):
            await self._store.save_values(uuid, found[start : start + _SAVED_TOGETHER])

    async def _collect_people(
        self,
        work: CollectInput,
        fields: Sequence[FieldSpec],
        edits: Edits,
        heart: Heartbeater,
    ) -> None:
        """Find the rows of which it is unclear whom they are about, and bibs of two people."""
        order = work.order
        answers = await people_answers(self._store, order, {})
        columns = [column for column in work.columns if column.target in {*IDENTIFYING, BIB}]
        context = await load_context(self._store, self._types, order, day_of_step(), only=())
        # Other columns are checked when the rows are written.
        sheet_type = replace(await sheet_type_of(self._types, order), check=check_person)
        plan = Plan(sheet_type, fields, columns, context, ValueBook((), context), answers, edits)
        async with fetched_rows(self._blobs, work.staged, self._scratch) as path:
            reading = SheetReader(path, plan, SheetMark())
            async with WorkerThread() as thread:
                try:
                    await thread.run(reading.open)
                    while (rows := await thread.run(reading.read)) is not None:
                        assert rows.query is not None
                        known = await self._store.people(order.organisation_id, rows.query)
                        chunk = await thread.run(partial(reading.chunk, rows, known))
                        await self._save(order.uuid, chunk.found)
                        heart.beat(ValuesCollected(rows=rows.cursor, values=len(chunk.found)))
                finally:
                    await thread.run(reading.close)

    @activity.defn(name="spreadsheets.decide_cells")
    @translate_failures
    async def decide_cells(self, decide: DecideCells) -> CellSummary:
        """Take decisions about values, all of them or none.

        A second run of the same version changes nothing and answers the same.

        Returns:
            Figures after the decisions, and the first values that are still open.

        Raises:
            ApplicationError: `InvalidDecision` names every decision that cannot be taken; see
                `activities.shared.failures` for the others.
        """
        async with Heartbeater():
            return await self._store.decide_cells(decide, *await self._targets(decide))

    async def _targets(
        self, decide: DecideCells
    ) -> tuple[Mapping[int, Entity], Sequence[Entity | None]]:
        """Check decisions and rules; what was chosen for each mapping, and by each rule.

        Raises:
            ApplicationError: `InvalidDecision`.
        """
        order = decide.order
        ids = [decision.id for decision in decide.decisions]
        found = await self._store.cell_mapping(order.uuid, ids)
        mappings = {mapping.id: mapping for mapping in found}
        fields = {each.name: each for each in await fields_of(self._store, self._types, order)}
        fields |= QUESTIONS
        asked = {mapping.field for mapping in found}
        asked |= {rule.field for rule in decide.rules if rule.field in fields}
        candidates = await self._candidates(decide, asked)
        referred = (await sheet_type_of(self._types, order)).referred
        reasons: list[str] = []
        targets: dict[int, Entity] = {}
        counts = Counter(ids)
        for decision in decide.decisions:
            mapping = mappings.get(decision.id)
            field = None if mapping is None else fields.get(mapping.field)
            if mapping is None or field is None or field.resolver is None:
                reasons.append(f"there is no value {decision.id} in this import")
                continue
            choices = candidates[field.resolver]
            if field.name in QUESTIONS:
                choices = {**choices, **_suggested(mapping)}
            refused = None
            if decision.create and field.resolver in referred:
                kind, bounds = referred[field.resolver], scope_of_rows(order)
                _, refused = row_made(kind, bounds, mapping.value)
            if counts[decision.id] > 1:
                reasons.append(f"value {decision.id} is decided twice")
            elif reason := _refusal(field, mapping, decision, choices, refused):
                reasons.append(reason)
            elif chosen := _chosen(mapping, decision, choices):
                targets[decision.id] = chosen
        checks = [
            check_rule(place, rule, fields, candidates)
            for place, rule in enumerate(decide.rules, start=1)
        ]
        reasons += [reason for reason in checks if reason is not None]
        for place, rule in enumerate(decide.rules, start=1):
            field = fields.get(rule.field or "")
            kind = None if field is None else referred.get(field.resolver or "")
            if rule.create and kind is not None and not kind.any_key:
                reasons.append(
                    f"rule {place}: {kind.title} does not take every key; decide about each value"
                )
        if reasons:
            raise _invalid(reasons)
        return targets, [_named(rule, fields, candidates) for rule in decide.rules]

    async def _candidates(
        self, decide: DecideCells, asked: Set[str]
    ) -> Mapping[str, Mapping[int, Entity]]:
        """What the values that are decided about may mean, by kind and id."""
        order = decide.order
        context = await load_context(
            self._store, self._types, order, decide.at.date(), only=asked - QUESTIONS.keys()
        )
        found: dict[str, Mapping[int, Entity]] = {
            kind: {entity.id: entity for entity in entities}
            for kind, entities in context.entities.items()
        }
        found[BIBS] = {}
        wanted = {
            decision.target_id
            for decision in decide.decisions
            if decision.target_id is not None and decision.target_id < FILE_ROWS
        }
        if PERSON.name in asked:
            people = await self._store.people_by_id(order.organisation_id, sorted(wanted))
            found[PEOPLE] = {each.id: Entity(each.id, each.identity.text) for each in people}
        return found


def _named(
    rule: CellRule,
    fields: Mapping[str, FieldSpec],
    candidates: Mapping[str, Mapping[int, Entity]],
) -> Entity | None:
    """What the target of a checked rule is."""
    if rule.field is None or rule.target_id is None:
        return None
    return candidates[fields[rule.field].resolver or ""][rule.target_id]


def _suggested(mapping: CellMapping) -> Mapping[int, Entity]:
    return {each.id: Entity(each.id, each.name) for each in mapping.alternatives if each.id}


def _refusal(
    field: FieldSpec,
    mapping: CellMapping,
    decision: CellDecision,
    choices: Mapping[int, Entity],
    why_not_made: str | None,
) -> str | None:
    reason = check_decision(field, decision, choices, why_not_made)
    if reason is None and decision.for_all and mapping.question is None:
        return f"value {decision.id} ({mapping.value!r}) belongs to no group of questions"
    if reason is not None or not decision.confirm:
        return reason
    if mapping.target_id in choices or mapping.create or mapping.question is not None:
        return None
    return (
        f"value {decision.id} ({mapping.value!r}) has no match to confirm; "
        "choose a candidate or ignore it"
    )


def _chosen(
    mapping: CellMapping, decision: CellDecision, choices: Mapping[int, Entity]
) -> Entity | None:
    id = mapping.target_id if decision.confirm else decision.target_id
    if decision.confirm and id is None and mapping.question and mapping.alternatives:
        id = mapping.alternatives[0].id
    return None if id is None else choices.get(id)


def _invalid(reasons: Sequence[str]) -> ApplicationError:
    named = "; ".join(dict.fromkeys(reasons[:_REASONS_NAMED]))
    more = len(reasons) - _REASONS_NAMED
    message = f"{named}; and {more} more" if more > 0 else named
    return ApplicationError(message, type=INVALID_DECISION, non_retryable=True)


async def _collect(collecting: ValueCollector, heart: Heartbeater) -> None:
    async with WorkerThread() as thread:
        try:
            while not await thread.run(collecting.step):
                heart.beat(ValuesCollected(rows=collecting.rows, values=collecting.resolved))
        finally:
            await thread.run(collecting.close)
