"""`docflow list`, `retry` and the others on jobs."""

import json
from pathlib import Path
from typing import Any

import pytest

from activities.jobs.api import InputNeeded, TaskContext
from tests.support.fresh_database import fresh_url
from tests.support.jobs.installation import job_installation, order_of
from tests.support.jobs.types import pieces
from tests.support.waiting import eventually
from workers.jobs.register import JOBS
from workers.jobs.run_actions import RUN_ACTIONS
from workers.shared.services import known_runs, runs
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.run_actions import AnswerRequest
from workers.shared.services.runs import TemporalRuns
from workflows.jobs.job import Job
from workflows.jobs.records import JobStatus
from workflows.jobs.runs import job_workflow_id
from workflows.shared.runs import RunFilter


@pytest.mark.cached(alone=True)
async def test_a_job_is_listed_named_by_its_beginning_and_answered_with_parameters(
    server: Any, run_worker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(context: TaskContext[Any], begun: int) -> None:
        if context.parameters.year is None:
            raise InputNeeded("year", "which year?")

    async def connected(environment: Any) -> TemporalRuns:
        return TemporalRuns(server.client, {})

    monkeypatch.setattr(runs, "open_runs", connected)
    kind = pieces(name="by_verbs")
    kind.act = staticmethod(act)
    order = order_of(kind, {"pieces": 1})
    url = fresh_url()
    environment = {"DATABASE_URL": url}
    async with job_installation(server.client, tmp_path, run_worker, kind, url=url) as jobs:
        handle = await jobs.start(order)

        async def is_parked() -> bool:
            return (await handle.query(Job.status)).waiting_since is not None

        await eventually(is_parked)
        _, run = await known_runs.find(order.job_id[:8], environment)
        listed = await known_runs.list_runs(environment, [JOBS], RunFilter(10, state="parked"))
        with pytest.raises(InvalidRequest, match="not a JSON object"):
            await RUN_ACTIONS.answer(environment, run, AnswerRequest("retry", correction=b"[]"))
        correction = json.dumps({"year": 1999}).encode()
        answered = await RUN_ACTIONS.answer(
            environment, run, AnswerRequest("retry", by="ann", correction=correction)
        )
        result = await handle.result()
    [entry] = listed.runs
    assert run.workflow_id == entry.id == job_workflow_id(order.job_id)
    assert (entry.own_state, entry.counts) == (
        "PARKED",
        {"stage": 1, "total_stages": 2, "failed_tasks": 1},
    )
    assert entry.reason is not None and "which year?" in entry.reason
    assert answered == {"workflow_id": run.workflow_id, "answer": "retry"}
    assert result.status is JobStatus.COMPLETED
