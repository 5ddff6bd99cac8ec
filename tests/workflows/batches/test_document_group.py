"""The story of a group of documents, with every step scripted."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError

from tests.support.batches.scripted_group import (
    DONE,
    KEY,
    OUTAGE,
    SINGLE,
    ScriptedGroup,
    group_of,
)
from tests.support.batches.scripted_load import unreadable
from tests.support.scripted import unavailable
from tests.support.waiting import eventually
from workflows.batches.document_load import FIRST_GROUP_PAUSE, DocumentGroup, DocumentLoad
from workflows.batches.loads import DocumentGroupInput, DocumentLoadInput, GroupStatus, LoadResult
from workflows.shared.dependencies import Recovery

pytestmark = pytest.mark.asyncio(loop_scope="session")

Handle = WorkflowHandle[Any, GroupStatus]


@dataclass
class Groups:
    """Starts groups on a worker of the test's own; documents have names that no other test has."""

    server: Any
    run_worker: Any

    def __post_init__(self) -> None:
        self._own = uuid.uuid4().hex

    def name(self, document: str) -> str:
        return f"{document}-{self._own}"

    def order(self, *documents: str) -> DocumentGroupInput:
        return group_of(*map(self.name, documents))

    def script(self, ends: Any = None, **options: Any) -> ScriptedGroup:
        return ScriptedGroup({self.name(id): each for id, each in (ends or {}).items()}, **options)

    @asynccontextmanager
    async def worker(self, script: ScriptedGroup) -> AsyncIterator[str]:
        queue = f"groups-{self._own}"
        async with self.run_worker(queue, [DocumentGroup, DocumentLoad], script.activities()):
            yield queue

    async def start(self, queue: str, order: DocumentGroupInput) -> Handle:
        return await self.server.client.start_workflow(
            DocumentGroup.run, order, id=f"{KEY.group_prefix}{uuid.uuid4()}", task_queue=queue
        )

    async def load_of(self, document: str) -> LoadResult:
        """How a load of its own ended."""
        id = f"{KEY.load_prefix}{self.name(document)}"
        return await self.server.client.get_workflow_handle(id, result_type=LoadResult).result()


@pytest.fixture
def groups(server: Any, run_worker: Any) -> Groups:
    return Groups(server, run_worker)


async def _result(groups: Groups, script: ScriptedGroup, *documents: str) -> GroupStatus:
    async with groups.worker(script) as queue:
        handle = await groups.start(queue, groups.order(*documents))
        result = await handle.result()
        for document in result.single:
            await groups.load_of(document.partition("-")[0])
    return result


@pytest.mark.cached
async def test_documents_that_are_loaded_together_cost_one_activity(groups: Groups) -> None:
    script = groups.script()
    assert await _result(groups, script, *"ABC") == GroupStatus(messages=3, done=3)
    assert script.calls == ["load_group"]


async def test_what_is_not_loaded_together_has_a_load_of_its_own(groups: Groups) -> None:
    script = groups.script({"B": [SINGLE], "C": [SINGLE]})
    result = await _result(groups, script, *"ABC")
    assert (result.done, set(result.single)) == (1, {groups.name("B"), groups.name("C")})
    assert script.made("dedupe") == 2 and script.made("load_group") == 1


async def test_an_outage_is_waited_for_and_only_what_met_it_is_tried_again(groups: Groups) -> None:
    script = groups.script({"B": [OUTAGE, OUTAGE, OUTAGE, OUTAGE, OUTAGE, DONE]})
    assert await _result(groups, script, *"AB") == GroupStatus(messages=2, done=2)
    both, *again = script.groups
    assert both == [groups.name("A"), groups.name("B")]
    assert again == [[groups.name("B")]] * 5
    assert script.made("wait") == 5 and not script.given_up


async def test_what_fails_by_a_dependency_that_answers_has_a_load_of_its_own(
    groups: Groups,
) -> None:
    script = groups.script({"A": [OUTAGE]})
    script.results["wait"] = Recovery(was_down=False)
    result = await _result(groups, script, "A")
    assert (result.done, result.single) == (0, (groups.name("A"),))
    assert len(script.groups) == 4


async def test_a_group_that_fails_as_a_whole_gives_each_document_its_own_load(
    groups: Groups,
) -> None:
    script = groups.script()
    script.fails["load_group"] = [unavailable(), unreadable("no such activity")]
    result = await _result(groups, script, *"AB")
    assert script.made("wait") == 1
    assert set(result.single) == {groups.name("A"), groups.name("B")}


async def test_a_document_with_another_load_is_looked_at_again(groups: Groups) -> None:
    script = groups.script({"A": [SINGLE, DONE]}, held={"dedupe"})
    order = groups.order("A")
    async with groups.worker(script) as queue:
        load = DocumentLoadInput(event=order.loads[0].event)
        other = await groups.server.client.start_workflow(
            DocumentLoad.run, load, id=load.event.workflow_id, task_queue=queue
        )
        await script.working.wait()
        handle = await groups.start(queue, order)

        async def looked() -> bool:
            return script.made("load_group") == 1

        await eventually(looked)
        await groups.server.skip(handle, by=2 * FIRST_GROUP_PAUSE)
        assert await handle.result() == GroupStatus(messages=1, done=1)
        script.held.clear()
        await other.result()
    assert script.made("dedupe") == 1


async def test_a_cancelled_group_stops_and_starts_no_load(groups: Groups) -> None:
    script = groups.script(held={"load_group"})
    async with groups.worker(script) as queue:
        handle = await groups.start(queue, groups.order(*"AB"))
        await script.working.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as raised:
            await handle.result()
    assert isinstance(raised.value.cause, CancelledError)
    assert script.calls == ["load_group"]
