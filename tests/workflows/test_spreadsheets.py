"""The story of one spreadsheet, with every activity scripted."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError

from contracts.errors import (
    INVALID_DECISION,
    SPREADSHEET_FAILED,
    STILL_OPEN,
    VERSION_CONFLICT,
    WRONG_STATE,
)
from contracts.spreadsheets import (
    Answer,
    CellDecision,
    CellDecisions,
    ColumnDecision,
    ColumnDecisions,
    Confirmation,
    Layout,
    LayoutChange,
    MappingsAnswer,
    MappingStatus,
    Reassignment,
    SpreadsheetOrder,
    SpreadsheetResult,
    SpreadsheetState,
    SpreadsheetStatus,
    workflow_id,
)
from tests.support.spreadsheets import (
    COUNTS,
    MATCHED,
    UNMATCHED,
    SheetWorld,
    damaged,
    spreadsheet_order,
    transient,
)
from workflows import attributes
from workflows.spreadsheets import SpreadsheetImport

pytestmark = pytest.mark.asyncio(loop_scope="session")

Handle = WorkflowHandle[Any, SpreadsheetResult]
S = SpreadsheetState
WHOLE_WAY = [S.UPLOADED, S.COLUMN_MAPPING, S.CELL_MAPPING, S.PROCESSING, S.COMPLETED]
ANN = Confirmation(by="ann")


@dataclass
class Spreadsheets:
    """Starts imports on a worker of the test's own."""

    server: Any
    run_worker: Any

    @asynccontextmanager
    async def running(self, world: SheetWorld, order: SpreadsheetOrder) -> AsyncIterator[Handle]:
        queue = f"spreadsheets-{uuid.uuid4().hex}"
        async with self.run_worker(queue, [SpreadsheetImport], world.activities()):
            yield await self.server.client.start_workflow(
                SpreadsheetImport.run,
                args=[order, None],
                id=workflow_id(order.uuid),
                task_queue=queue,
                search_attributes=attributes.at_start("spreadsheets", "EVENT_PARTICIPANT", "1"),
            )


@pytest.fixture
def spreadsheets(server: Any, run_worker: Any) -> Spreadsheets:
    return Spreadsheets(server, run_worker)


async def _until(handle: Handle, done: Callable[[SpreadsheetStatus], bool]) -> SpreadsheetStatus:
    async with asyncio.timeout(20):
        while not done(status := await handle.query(SpreadsheetImport.status)):
            await asyncio.sleep(0.02)
    return status


async def _waiting(handle: Handle, state: SpreadsheetState) -> SpreadsheetStatus:
    return await _until(handle, lambda s: s.state is state and s.waiting_since is not None)


async def _refused(handle: Handle, name: str, answer: Any) -> ApplicationError:
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update(name, answer)
    assert isinstance(refused.value.cause, ApplicationError)
    return refused.value.cause


async def _shows(handle: Handle, state: str, person: str | None) -> None:
    """Until visibility has caught up with the run."""
    async with asyncio.timeout(20):
        while True:
            found = (await handle.describe()).typed_search_attributes
            if (found.get(attributes.STATE), found.get(attributes.WAITING_FOR)) == (state, person):
                return
            await asyncio.sleep(0.02)


def _columns(*decisions: ColumnDecision, version: int | None = None) -> ColumnDecisions:
    return ColumnDecisions(by="ann", expected_version=version, decisions=decisions)


def _values(*decisions: CellDecision, version: int | None = None) -> CellDecisions:
    return CellDecisions(by="ann", expected_version=version, decisions=decisions)


async def _answer(handle: Handle, name: str, answer: Any) -> MappingsAnswer:
    return await handle.execute_update(name, answer, result_type=MappingsAnswer)


async def test_with_nothing_to_ask_it_goes_straight_through(spreadsheets: Spreadsheets) -> None:
    world = SheetWorld()
    async with spreadsheets.running(world, spreadsheet_order(auto_start=True)) as handle:
        result = await handle.result()
    assert (result.state, result.counts, result.report) == (S.COMPLETED, COUNTS, None)
    assert world.states == WHOLE_WAY
    assert world.notices == []
    world.check_legal()


async def test_without_auto_start_it_waits_for_both_confirmations(
    spreadsheets: Spreadsheets,
) -> None:
    world = SheetWorld()
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        status = await _waiting(handle, S.COLUMN_MAPPING)
        assert (status.version, status.missing_fields, status.assignee) == (1, (), "ann")
        answer = await _answer(handle, "confirm_column_mappings", ANN)
        assert answer.state is S.CELL_MAPPING
        assert answer.cells.total == 3
        await _waiting(handle, S.CELL_MAPPING)
        answer = await _answer(handle, "confirm_cell_mappings", ANN)
        assert answer.state in (S.PROCESSING, S.COMPLETED)
        assert (await handle.result()).state is S.COMPLETED
    assert world.states == WHOLE_WAY
    assert [save.remember for save in world.saved] == [True]
    assert [decide.confirm for decide in world.decided] == [True]
    world.check_legal()


async def test_an_import_without_values_skips_their_confirmation(
    spreadsheets: Spreadsheets,
) -> None:
    async with spreadsheets.running(SheetWorld(known=0), spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        await _answer(handle, "confirm_column_mappings", ANN)
        assert (await handle.result()).state is S.COMPLETED


async def test_a_person_answers_for_columns_and_values(spreadsheets: Spreadsheets) -> None:
    world = SheetWorld(columns=UNMATCHED, values=("U18", "Old boys"))
    async with spreadsheets.running(world, spreadsheet_order(auto_start=True)) as handle:
        status = await _waiting(handle, S.COLUMN_MAPPING)
        assert status.missing_fields == ("LAST_NAME",)
        answer = await _answer(
            handle,
            "update_column_mappings",
            _columns(ColumnDecision(id=1, target="LAST_NAME"), ColumnDecision(id=3, ignore=True)),
        )
        assert (answer.version, answer.missing_fields) == (2, ())
        answer = await _answer(handle, "confirm_column_mappings", ANN)
        assert (answer.state, answer.cells.open) == (S.CELL_MAPPING, 2)
        first, second = answer.cells.first_open
        await _waiting(handle, S.CELL_MAPPING)
        answer = await _answer(
            handle, "update_cell_mappings", _values(CellDecision(id=first.id, target_id=7))
        )
        assert answer.cells.open == 1
        await _answer(
            handle, "update_cell_mappings", _values(CellDecision(id=second.id, ignore=True))
        )
        await _answer(handle, "confirm_cell_mappings", ANN)
        assert (await handle.result()).state is S.COMPLETED
    assert world.states == WHOLE_WAY
    saved = world.saved[0]
    assert [(c.target, c.status) for c in saved.columns] == [
        ("LAST_NAME", MappingStatus.MANUAL_MATCHED),
        ("EVENT_CATEGORY_NAME", MappingStatus.AUTO_MATCHED),
        (None, MappingStatus.IGNORED),
    ]
    assert [(line.subject, line.decision, line.by) for line in saved.trail] == [
        ("Who", "LAST_NAME", "ann"),
        ("Shoe size", "ignored", "ann"),
    ]


async def test_a_refusal_says_what_is_open_and_changes_nothing(
    spreadsheets: Spreadsheets,
) -> None:
    world = SheetWorld(columns=UNMATCHED, values=("U18",))
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        for name in ("confirm_column_mappings", "start"):
            refusal = await _refused(handle, name, ANN)
            assert refusal.type == STILL_OPEN
            assert "LAST_NAME" in refusal.message
            assert MappingsAnswer.model_validate(refusal.details[0]).missing_fields == (
                "LAST_NAME",
            )
        assert (await handle.query(SpreadsheetImport.status)).version == 1
        assert world.saved == []
        await _answer(
            handle, "update_column_mappings", _columns(ColumnDecision(id=1, target="LAST_NAME"))
        )
        await _answer(handle, "confirm_column_mappings", ANN)
        await _waiting(handle, S.CELL_MAPPING)
        for name in ("confirm_cell_mappings", "start"):
            refusal = await _refused(handle, name, ANN)
            assert refusal.type == STILL_OPEN
            assert "'U18'" in refusal.message
        assert world.decided == []
        refusal = await _refused(handle, "confirm_column_mappings", ANN)
        assert refusal.type == WRONG_STATE
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()


@pytest.mark.parametrize(
    ("decisions", "named"),
    [
        ([ColumnDecision(id=9, ignore=True)], "no column 9"),
        ([ColumnDecision(id=1, target="SHOE_SIZE")], "no field SHOE_SIZE"),
        ([ColumnDecision(id=1)], "exactly one of"),
        ([ColumnDecision(id=1, target="LAST_NAME", ignore=True)], "exactly one of"),
        ([ColumnDecision(id=1, confirm=True)], "no match to confirm"),
        ([ColumnDecision(id=1, ignore=True), ColumnDecision(id=1, ignore=True)], "twice"),
        (
            [ColumnDecision(id=1, target="LAST_NAME"), ColumnDecision(id=3, target="LAST_NAME")],
            "two columns cannot fill LAST_NAME: 'Who' and 'Shoe size'",
        ),
    ],
)
async def test_columns_that_make_no_sense_are_refused(
    spreadsheets: Spreadsheets, decisions: list[ColumnDecision], named: str
) -> None:
    world = SheetWorld(columns=UNMATCHED)
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        refusal = await _refused(handle, "update_column_mappings", _columns(*decisions))
        assert refusal.type == INVALID_DECISION
        assert named in refusal.message
        assert world.saved == []
        await _answer(handle, "cancel", Answer(by="ann"))


async def test_a_field_that_is_given_away_is_taken_from_its_automatic_match(
    spreadsheets: Spreadsheets,
) -> None:
    world = SheetWorld(columns=(MATCHED[0], *UNMATCHED[1:]))
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        await _answer(
            handle, "update_column_mappings", _columns(ColumnDecision(id=3, target="LAST_NAME"))
        )
        columns = (await handle.query(SpreadsheetImport.column_mappings)).columns
        assert [column.target for column in columns] == [None, "EVENT_CATEGORY_NAME", "LAST_NAME"]
        assert columns[0].status is MappingStatus.UNMATCHED
        await _answer(handle, "cancel", Answer(by="ann"))


async def test_of_two_people_at_once_the_second_is_told(spreadsheets: Spreadsheets) -> None:
    world = SheetWorld(columns=UNMATCHED)
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        answers = await asyncio.gather(
            *(
                handle.execute_update(
                    "update_column_mappings",
                    _columns(ColumnDecision(id=3, ignore=True), version=1),
                )
                for _ in range(2)
            ),
            return_exceptions=True,
        )
        told = [answer for answer in answers if isinstance(answer, WorkflowUpdateFailedError)]
        assert len(told) == 1
        assert isinstance(told[0].cause, ApplicationError)
        assert told[0].cause.type == VERSION_CONFLICT
        assert len(world.saved) == 1
        await _answer(handle, "cancel", Answer(by="ann"))


async def test_start_skips_the_values_and_parks_only_rows_that_need_one(
    spreadsheets: Spreadsheets,
) -> None:
    world = SheetWorld(late=[("U18", "Old boys"), ()])
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        await _answer(handle, "start", ANN)
        status = await _waiting(handle, S.CELL_MAPPING)
        assert "collect_values" not in world.calls
        assert status.cells.open == 2
        assert status.counts == COUNTS
        for value in status.cells.first_open:
            await _answer(
                handle, "update_cell_mappings", _values(CellDecision(id=value.id, target_id=7))
            )
        await _answer(handle, "confirm_cell_mappings", ANN)
        assert (await handle.result()).state is S.COMPLETED
    assert [work.round for work in world.processed] == [0, 1]
    assert world.states == [*WHOLE_WAY[:-1], S.CELL_MAPPING, S.PROCESSING, S.COMPLETED]
    world.check_legal()


async def test_a_candidate_that_does_not_exist_is_refused_by_the_activity(
    spreadsheets: Spreadsheets,
) -> None:
    world = SheetWorld(values=("U18",))
    async with spreadsheets.running(world, spreadsheet_order(auto_start=True)) as handle:
        status = await _waiting(handle, S.CELL_MAPPING)
        wrong = _values(CellDecision(id=status.cells.first_open[0].id, target_id=404))
        refusal = await _refused(handle, "update_cell_mappings", wrong)
        assert refusal.type == INVALID_DECISION
        assert "no candidate 404" in refusal.message
        after = await handle.query(SpreadsheetImport.status)
        assert (after.version, after.cells) == (status.version, status.cells)
        await _answer(handle, "cancel", Answer(by="ann"))


async def test_another_layout_is_read_and_rows_are_put_aside_again(
    spreadsheets: Spreadsheets,
) -> None:
    world = SheetWorld()
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        change = LayoutChange(by="ann", layout=Layout(sheet="Second"), expected_version=1)
        answer = await _answer(handle, "change_layout", change)
        assert answer.version == 2
        world.failures["analyse"] = [damaged("there is no sheet 'Third'")]
        change = LayoutChange(by="ann", layout=Layout(sheet="Third"))
        refusal = await _refused(handle, "change_layout", change)
        assert (refusal.type, refusal.message) == (INVALID_DECISION, "there is no sheet 'Third'")
        await _answer(handle, "start", ANN)
        assert (await handle.result()).state is S.COMPLETED
    assert [layout.sheet for layout in world.layouts][-1] == "Second"
    assert world.processed[0].staged.total == 10


async def test_signals_do_what_updates_do(spreadsheets: Spreadsheets) -> None:
    world = SheetWorld(columns=UNMATCHED, values=("U18",))
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        await handle.signal("confirm_column_mappings")
        status = await _until(handle, lambda s: s.last_refusal is not None)
        assert status.last_refusal is not None
        assert "LAST_NAME" in status.last_refusal
        await handle.signal(
            "update_column_mappings", _columns(ColumnDecision(id=1, target="LAST_NAME"))
        )
        await handle.signal("change_layout", LayoutChange(by="ann", layout=Layout(sheet="Second")))
        await _until(handle, lambda s: s.version == 3)
        await handle.signal(
            "update_column_mappings", _columns(ColumnDecision(id=1, target="LAST_NAME"))
        )
        await handle.signal("reassign", Reassignment(to="bea", by="ann"))
        await handle.signal("confirm_column_mappings")
        status = await _waiting(handle, S.CELL_MAPPING)
        assert status.assignee == "bea"
        decision = CellDecision(id=status.cells.first_open[0].id, create=True)
        await handle.signal("update_cell_mappings", _values(decision))
        await handle.signal("confirm_cell_mappings")
        assert (await handle.result()).state is S.COMPLETED
    world.check_legal()


@pytest.mark.parametrize("signal", ["start", "cancel"])
async def test_the_other_signals(spreadsheets: Spreadsheets, signal: str) -> None:
    world = SheetWorld()
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        await handle.signal(signal)
        result = await handle.result()
    assert result.state is (S.COMPLETED if signal == "start" else S.CANCELLED)


async def test_what_is_awaited_stands_where_operators_look(spreadsheets: Spreadsheets) -> None:
    world = SheetWorld(columns=UNMATCHED)
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        status = await _waiting(handle, S.COLUMN_MAPPING)
        await _shows(handle, "COLUMN_MAPPING", "ann")
        found = (await handle.describe()).typed_search_attributes
        assert found[attributes.NEEDS_ATTENTION] is True
        assert found[attributes.WAITING_SINCE] == status.waiting_since
        metadata: WorkflowMetadata = await handle.query(
            "__temporal_workflow_metadata", result_type=WorkflowMetadata
        )
        assert "LAST_NAME" in metadata.current_details
        assert "temporal workflow update execute" in metadata.current_details
        await _answer(handle, "reassign", Reassignment(to="bea", by="ann"))
        await _shows(handle, "COLUMN_MAPPING", "bea")
        await _answer(handle, "cancel", Answer(by="bea", reason="wrong file"))
        await _shows(handle, "CANCELLED", None)
        found = (await handle.describe()).typed_search_attributes
        assert found[attributes.NEEDS_ATTENTION] is False
    last = world.finished[-1]
    assert (last.result.state, last.result.reason) == (S.CANCELLED, "wrong file")
    assert [line.by for line in last.record.trail] == ["bea"]


@pytest.mark.parametrize("step", ["analyse", "stage", "collect_values", "process"])
async def test_it_can_be_cancelled_in_every_state(spreadsheets: Spreadsheets, step: str) -> None:
    world = SheetWorld(held={step})
    async with spreadsheets.running(world, spreadsheet_order(auto_start=True)) as handle:
        async with asyncio.timeout(20):
            while step not in world.calls:
                await asyncio.sleep(0.02)
        answer = await _answer(handle, "cancel", Answer(by="ann"))
        assert answer.state is S.CANCELLED
        assert (await handle.result()).state is S.CANCELLED
    assert "finish" in world.calls
    world.check_legal()


async def test_temporals_own_cancel_is_recorded_too(spreadsheets: Spreadsheets) -> None:
    world = SheetWorld()
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED
    assert world.finished[-1].result.state is S.CANCELLED


@pytest.mark.parametrize("step", ["analyse", "stage", "process"])
async def test_a_damaged_file_fails_with_the_reason(spreadsheets: Spreadsheets, step: str) -> None:
    world = SheetWorld(failures={step: [damaged("the file is damaged at row 9")]})
    async with spreadsheets.running(world, spreadsheet_order(auto_start=True)) as handle:
        with pytest.raises(WorkflowFailureError) as failure:
            await handle.result()
    assert isinstance(failure.value.cause, ApplicationError)
    assert failure.value.cause.type == SPREADSHEET_FAILED
    assert failure.value.cause.message == "the file is damaged at row 9"
    assert world.finished[-1].result.state is S.FAILED
    world.check_legal()


async def test_damage_that_shows_while_a_person_maps_fails_at_once(
    spreadsheets: Spreadsheets,
) -> None:
    world = SheetWorld(held={"stage"}, failures={"stage": [damaged()]})
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        world.release.set()
        with pytest.raises(WorkflowFailureError):
            await handle.result()
    assert world.states == [S.UPLOADED, S.COLUMN_MAPPING, S.FAILED]


@pytest.mark.parametrize(
    "step", ["begin", "analyse", "stage", "collect_values", "process", "write_report"]
)
async def test_a_step_that_cannot_be_done_parks_and_goes_on(
    spreadsheets: Spreadsheets, step: str
) -> None:
    world = SheetWorld(failures={step: [transient()]}, errors=1)
    async with spreadsheets.running(world, spreadsheet_order(auto_start=True)) as handle:
        status = await _until(handle, lambda s: s.reason is not None)
        assert status.reason == "the database is away"
        await _shows(handle, "parked", "operators")
        await _answer(handle, "retry", Answer(by="ann"))
        result = await handle.result()
    assert result.state is S.COMPLETED
    assert result.report is not None
    assert world.calls.count(step) == 2
    world.check_legal()


async def test_an_end_that_cannot_be_recorded_waits(spreadsheets: Spreadsheets) -> None:
    world = SheetWorld(failures={"finish": [transient()]})
    async with spreadsheets.running(world, spreadsheet_order(auto_start=True)) as handle:
        await _until(handle, lambda s: s.reason is not None)
        await handle.signal("retry")
        assert (await handle.result()).state is S.COMPLETED


async def test_people_are_reminded_then_others_are_told_then_it_is_given_up(
    spreadsheets: Spreadsheets, server: Any
) -> None:
    world = SheetWorld(columns=UNMATCHED)
    async with spreadsheets.running(world, spreadsheet_order(notify="ann@example.org")) as handle:

        async def told(after: timedelta, count: int) -> list[str]:
            await server.skip(handle, after)
            async with asyncio.timeout(20):
                while len(world.notices) < count:
                    await asyncio.sleep(0.02)
            return [notice.kind for notice in world.notices]

        await _waiting(handle, S.COLUMN_MAPPING)
        await server.skip(handle, timedelta(days=2, hours=23))
        assert world.notices == []
        assert await told(timedelta(hours=2), 1) == ["reminder"]
        assert await told(timedelta(days=7), 2) == ["reminder"] * 2
        assert (await told(timedelta(days=4), 3))[2:] == ["escalation"]
        assert (await told(timedelta(days=3), 4))[3:] == ["reminder"]
        notice = world.notices[0]
        assert (notice.assignee, notice.notify) == ("ann", "ann@example.org")
        assert "LAST_NAME" in notice.open
        # Whoever does something has the whole time again.
        await _answer(handle, "update_column_mappings", _columns(ColumnDecision(id=3, ignore=True)))
        await server.skip(handle, timedelta(days=2, hours=23))
        assert len(world.notices) == 4
        await server.skip(handle, timedelta(days=88))
        result = await handle.result()
    assert result.state is S.CANCELLED
    assert result.reason == "nobody has answered for 90 days"
    assert world.notices[-1].kind == "abandoned"
    world.check_legal()


async def test_an_answer_after_months_is_taken(spreadsheets: Spreadsheets, server: Any) -> None:
    world = SheetWorld()
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        for _ in range(8):
            await server.skip(handle, timedelta(days=11))
        await _answer(handle, "start", ANN)
        assert (await handle.result()).state is S.COMPLETED


async def test_a_reminder_that_cannot_be_sent_stops_nothing(
    spreadsheets: Spreadsheets, server: Any
) -> None:
    world = SheetWorld(failures={"notify": [transient("no mail server")]})
    async with spreadsheets.running(world, spreadsheet_order()) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        await server.skip(handle, timedelta(days=4))
        async with asyncio.timeout(20):
            while "notify" not in world.calls:
                await asyncio.sleep(0.02)
        await _answer(handle, "start", ANN)
        assert (await handle.result()).state is S.COMPLETED


async def test_a_long_history_begins_anew_and_loses_nothing(
    spreadsheets: Spreadsheets, server: Any
) -> None:
    world = SheetWorld(columns=UNMATCHED, values=("U18",))
    order = spreadsheet_order()
    async with spreadsheets.running(world, order) as handle:
        await _waiting(handle, S.COLUMN_MAPPING)
        latest = server.client.get_workflow_handle(handle.id)
        first_run = (await latest.describe()).run_id
        for number in range(60):
            await _answer(
                latest,
                "update_column_mappings",
                _columns(ColumnDecision(id=3, ignore=True), version=number + 1),
            )
        assert (await latest.describe()).run_id != first_run
        status = await latest.query(SpreadsheetImport.status)
        assert (status.version, status.missing_fields) == (61, ("LAST_NAME",))
        await _answer(
            latest, "update_column_mappings", _columns(ColumnDecision(id=1, target="LAST_NAME"))
        )
        await _answer(latest, "confirm_column_mappings", ANN)
        status = await _waiting(latest, S.CELL_MAPPING)
        value = status.cells.first_open[0]
        await _answer(
            latest, "update_cell_mappings", _values(CellDecision(id=value.id, target_id=7))
        )
        await _answer(latest, "start", ANN)
        result = await latest.result()
        assert SpreadsheetResult.model_validate(result).state is S.COMPLETED
    assert world.calls.count("begin") == world.calls.count("analyse") == 1
    assert world.calls.count("stage") == 1
    world.check_legal()
