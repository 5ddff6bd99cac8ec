"""Cases and batches have one task queue, documents another; cases take turns in both."""

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.test_catalogue import OWN
from workers.batches import case_events
from workers.batches.documents import DocumentIntake
from workers.batches.register import BATCHES
from workers.shared.register import activities_of
from workers.shared.services.bodies import Settle
from workflows.batches.events import JobStarted
from workflows.batches.names import LOADING_TASK_QUEUE, TASK_QUEUE, BatchKey, Timings
from workflows.batches.runs import CaseInput

KEY = BatchKey(case_id=7, batch_id=1)
DOCUMENT = (
    b'{"eventType": "DOCUMENT_PROCESSED", "caseId": 7, "batchId": 1, "documentId": "D-1",'
    b' "blobName": "a.txt"}'
)


class Client:
    """Stands for Temporal's client: what was started."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []

    async def start_workflow(self, name: str, order: Any, **options: Any) -> None:
        self.started.append({"name": name, "order": order, **options})

    async def execute_update_with_start_workflow(self, *update: Any, **options: Any) -> None:
        return


@dataclass
class Start:
    """What a case is started with."""

    order: CaseInput
    options: dict[str, Any]

    async def workflow_handle(self) -> None:
        return


async def test_a_document_is_loaded_in_a_task_queue_of_its_own_by_turns_of_cases() -> None:
    client: Any = Client()
    intake = DocumentIntake(client, KEY, "docflow_doc_loader_7_1")
    settled = await intake.accept(DOCUMENT, 0, "m-1")
    [started] = client.started
    assert settled == Settle(started["id"])
    assert (started["name"], started["task_queue"]) == ("DocumentGroup", LOADING_TASK_QUEUE)
    assert started["priority"].fairness_key == "case/7"


async def test_messages_of_one_moment_are_grouped_by_ten_at_most() -> None:
    client: Any = Client()
    intake = DocumentIntake(client, KEY, "docflow_doc_loader_7_1")
    bodies = [DOCUMENT.replace(b"D-1", b"D-%d" % number) for number in range(23)]
    settled = await asyncio.gather(*(intake.accept(body, 0, "m") for body in bodies))
    ids = [started["id"] for started in client.started]
    assert {each.workflow_id for each in settled if isinstance(each, Settle)} == set(ids)
    assert [len(started["order"].loads) for started in client.started] == [10, 10, 3]
    assert all(re.fullmatch(r"load-group/7/1/[0-9a-f]{32}", id) for id in ids)


async def test_a_case_runs_apart_from_loading_and_takes_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Start] = []

    def start(run: object, order: CaseInput, **options: Any) -> Start:
        made.append(Start(order, options))
        return made[-1]

    monkeypatch.setattr(case_events, "WithStartWorkflowOperation", start)
    client: Any = Client()
    await case_events.CaseRuns(client, Timings()).deliver(JobStarted(case_id=7, batch_id=1), "1")
    [started] = made
    assert (started.order.case_id, started.options["task_queue"]) == (7, TASK_QUEUE)
    assert started.options["priority"].fairness_key == "case/7"


def test_permissions_of_batches_that_an_earlier_release_began_are_still_served() -> None:
    names = names_of_activities(BATCHES.activities)
    assert {"grant_permissions", "revoke_permissions", "prove_delivery"} <= names


def test_loads_that_an_earlier_release_started_are_still_served() -> None:
    [lane] = BATCHES.lanes
    assert lane.task_queue == LOADING_TASK_QUEUE != BATCHES.task_queue
    assert lane.workflows is not None
    assert set(lane.workflows()) < set(BATCHES.workflows())
    assert {"dedupe", "extract", "give_up"} <= names_of_activities(lane.activities)
    assert names_of_activities(lane.activities) < names_of_activities(BATCHES.activities)


def names_of_activities(build: Any) -> set[str]:
    common = SimpleNamespace(blobs=None, scratch=Path())
    return {each.__name__ for each in activities_of(*build(common, OWN[BATCHES]))}
