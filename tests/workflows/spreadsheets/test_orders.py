"""Whatever people say, in whatever order, with workers coming and going: no import reaches a state
it may not reach, and no decision that was accepted is lost."""

import asyncio
import uuid
from collections.abc import Coroutine, Iterator
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from stack.temporal import TUNING, temporal_binary
from tests.support.chaos import examples
from tests.support.spreadsheets.scripted import UNMATCHED, ScriptedSpreadsheet, spreadsheet_order
from tests.support.waiting import eventually
from workers.shared.plugin import docflow_plugin
from workflows.shared import attributes
from workflows.shared.errors import INVALID_DECISION, STILL_OPEN, VERSION_CONFLICT, WRONG_STATE
from workflows.spreadsheets.mappings import (
    FINAL,
    CellDecision,
    CellDecisions,
    ColumnDecision,
    ColumnDecisions,
    MappingsAnswer,
    SpreadsheetState,
)
from workflows.spreadsheets.runs import (
    Answer,
    Confirmation,
    Reassignment,
    SpreadsheetResult,
    workflow_id,
)
from workflows.spreadsheets.spreadsheet_import import SpreadsheetImport

T = TypeVar("T")

REFUSALS = {STILL_OPEN, WRONG_STATE, VERSION_CONFLICT, INVALID_DECISION}
CONFIRMATIONS = ("confirm_column_mappings", "confirm_cell_mappings", "start")
TARGETS = ("LAST_NAME", "FIRST_NAME", None)


class OrderSetup:
    """One Temporal server for all examples, and the loop it lives in."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        arguments: list[str] = []
        for value in TUNING:
            arguments += ["--dynamic-config-value", value]
        self.environment = self.run(
            WorkflowEnvironment.start_local(
                dev_server_existing_path=temporal_binary(),
                dev_server_extra_args=arguments,
                search_attributes=attributes.ALL,
                plugins=[docflow_plugin()],
            )
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(60):
                return await work

        return self.loop.run_until_complete(bounded())

    def close(self) -> None:
        self.run(self.environment.shutdown())
        self.loop.close()


@pytest.fixture(scope="module")
def setup() -> Iterator[OrderSetup]:
    setup = OrderSetup()
    yield setup
    setup.close()


class Orders(RuleBasedStateMachine):
    """One import, answered in any order."""

    setup: OrderSetup

    @initialize(
        auto_start=st.booleans(),
        values=st.sampled_from([(), ("U18",), ("U18", "Old boys")]),
        late=st.sampled_from([[], [("New",)]]),
    )
    def begin(self, auto_start: bool, values: tuple[str, ...], late: list[Any]) -> None:
        self.script = ScriptedSpreadsheet(columns=UNMATCHED, values=values, late=list(late))
        self.accepted: dict[int, str | None] = {}
        self.answered: set[int] = set()
        self.ended = False
        self.queue = uuid.uuid4().hex
        self.worker: Worker | None = None
        self.setup.run(self._begin(auto_start))

    async def _begin(self, auto_start: bool) -> None:
        order = spreadsheet_order(auto_start=auto_start)
        self.handle: WorkflowHandle[Any, Any] = await self.setup.environment.client.start_workflow(
            SpreadsheetImport.run,
            args=[order, None],
            id=workflow_id(order.uuid),
            task_queue=self.queue,
            search_attributes=attributes.at_start("spreadsheets", order.import_type, "1"),
            # A task that a worker took along when it stopped is given to the next one after this.
            task_timeout=timedelta(seconds=1),
        )
        await self._start_worker()

    async def _start_worker(self) -> None:
        self.worker = Worker(
            self.setup.environment.client,
            task_queue=self.queue,
            workflows=[SpreadsheetImport],
            activities=self.script.activities(),
        )
        self.running = asyncio.create_task(self.worker.run())

    async def _stop_worker(self) -> None:
        assert self.worker is not None
        await self.worker.shutdown()
        await self.running

    @rule()
    def restart_worker(self) -> None:
        self.setup.run(self._restart())

    async def _restart(self) -> None:
        await self._stop_worker()
        await self._start_worker()

    async def _update(self, name: str, answer: Any) -> MappingsAnswer | None:
        """The answer, or None when the update was refused; anything else is a failure."""
        try:
            return await self.handle.execute_update(name, answer, result_type=MappingsAnswer)
        except WorkflowUpdateFailedError as error:
            assert getattr(error.cause, "type", None) in REFUSALS, error.cause
        except RPCError as error:
            # The import has ended.
            assert error.status is RPCStatusCode.NOT_FOUND, error
        return None

    @rule(
        id=st.integers(1, 3),
        field=st.sampled_from(TARGETS),
        expected=st.one_of(st.none(), st.integers(1, 4)),
    )
    def map_column(self, id: int, field: str | None, expected: int | None) -> None:
        decision = ColumnDecision(id=id, target=field, ignore=field is None)
        decisions = ColumnDecisions(by="ann", expected_version=expected, decisions=(decision,))
        if self.setup.run(self._update("update_column_mappings", decisions)) is not None:
            self.accepted[id] = field

    @rule(id=st.integers(1, 3), data=st.data())
    def map_value(self, id: int, data: st.DataObject) -> None:
        unknown = data.draw(st.booleans(), "a candidate that does not exist")
        decision = CellDecision(id=id, target_id=404 if unknown else 7)
        decisions = CellDecisions(by="ann", decisions=(decision,))
        if self.setup.run(self._update("update_cell_mappings", decisions)) is not None:
            assert not unknown
            self.answered.add(id)

    @rule(name=st.sampled_from(CONFIRMATIONS), as_signal=st.booleans())
    def confirm(self, name: str, as_signal: bool) -> None:
        self._say(name, Confirmation(by="ann"), as_signal)

    @rule(as_signal=st.booleans())
    def reassign(self, as_signal: bool) -> None:
        self._say("reassign", Reassignment(to="bea", by="ann"), as_signal)

    @rule(as_signal=st.booleans(), sure=st.integers(0, 3))
    def cancel(self, as_signal: bool, sure: int) -> None:
        # Seldom: most of the ways through an import begin after this.
        if sure == 0:
            self._say("cancel", Answer(by="ann"), as_signal)

    def _say(self, name: str, answer: Any, as_signal: bool) -> None:
        if as_signal:
            self.setup.run(self._signal(name, answer))
        else:
            self.setup.run(self._update(name, answer))

    async def _signal(self, name: str, answer: Any) -> None:
        try:
            await self.handle.signal(name, answer)
        except RPCError as error:
            assert error.status is RPCStatusCode.NOT_FOUND, error

    @precondition(lambda self: hasattr(self, "script"))
    @invariant()
    def only_legal_states(self) -> None:
        self.script.check_legal()

    def teardown(self) -> None:
        if hasattr(self, "script"):
            self.setup.run(self._end())

    async def _end(self) -> None:
        """Answer whatever is open; then nothing that was accepted may be missing."""
        try:
            await eventually(self._helped)
            result = await self.handle.result()
            assert SpreadsheetResult.model_validate(result).state in FINAL
        finally:
            await self._stop_worker()
        self.script.check_legal()
        if self.script.saved:
            saved = {column.id: column.target for column in self.script.saved[-1].columns}
            for id, target in self.accepted.items():
                # A field may have been given to another column afterwards, but only by a person.
                assert saved[id] == target
        decided = {d.id for decide in self.script.decided for d in decide.decisions}
        assert decided >= self.answered

    async def _helped(self) -> bool:
        described = await self.handle.describe()
        if described.status is not None and described.status.name != "RUNNING":
            return True
        status = await self.handle.query(SpreadsheetImport.status)
        if status.state is SpreadsheetState.COLUMN_MAPPING:
            if status.missing_fields:
                free = next(id for id in (1, 3) if self.accepted.get(id) is None)
                decision = ColumnDecision(id=free, target="LAST_NAME")
                answer = ColumnDecisions(by="end", decisions=(decision,))
                if await self._update("update_column_mappings", answer) is not None:
                    self.accepted[free] = "LAST_NAME"
            await self._update("confirm_column_mappings", Confirmation(by="end"))
        elif status.state is SpreadsheetState.CELL_MAPPING:
            for value in status.cells.first_open:
                decision = CellDecision(id=value.id, ignore=True)
                answer = CellDecisions(by="end", decisions=(decision,))
                await self._update("update_cell_mappings", answer)
            await self._update("confirm_cell_mappings", Confirmation(by="end"))
        return False


@pytest.mark.chaos
def test_any_order_of_answers(setup: OrderSetup) -> None:
    Orders.setup = setup
    run_state_machine_as_test(
        Orders,
        settings=settings(
            max_examples=examples(5),
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
