"""What can be done to runs of jobs, by id."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from workers import catalogue
from workers.shared.register import Run, recognise
from workers.shared.services.bodies import correction_of
from workers.shared.services.errors import InvalidRequest
from workers.shared.services.verbs import (
    AnswerRequest,
    Filters,
    Report,
    RunEntry,
    RunVerbs,
    send_answer,
)
from workflows.jobs.records import JobRecord, JobStatus
from workflows.jobs.runs import job_workflow_id

_BEGINNING: Final = re.compile("[0-9a-fA-F]{8,64}")
_RUNNING: Final = "running"
_OPEN: Final = (JobStatus.QUEUED, JobStatus.PROCESSING, JobStatus.PARKED)


class JobVerbs:
    """What can be done to jobs, their stages and batches."""

    pipeline = "jobs"
    naming = "job/ID, or the first 8 characters of ID or more"
    states: Sequence[str] = tuple(
        dict.fromkeys(_RUNNING if status in _OPEN[:2] else status.lower() for status in JobStatus)
    )
    filters: frozenset[str] = frozenset()
    corrects: frozenset[str] = frozenset({"retry"})
    changes: frozenset[str] = frozenset()

    async def resolve(self, text: str, environment: Mapping[str, str]) -> Sequence[Run] | None:
        """The jobs whose id begins so."""
        if not _BEGINNING.fullmatch(text):
            return None
        from activities.jobs.store import SqlJobStore
        from workers.shared.tables import open_tables

        async with open_tables(environment) as database:
            found = await SqlJobStore(database).find(text)
        runs = (recognise(catalogue.PIPELINES, job_workflow_id(each.job_id)) for each in found)
        return [run for run in runs if run is not None]

    def name(self, run: Run) -> str:
        """The workflow id."""
        return run.workflow_id

    async def list(self, environment: Mapping[str, str], filters: Filters) -> Sequence[RunEntry]:
        """Jobs, as the database has them."""
        from activities.jobs.store import SqlJobStore
        from workers.shared.tables import open_tables

        wanted = JobStatus.PROCESSING if filters.state == _RUNNING else None
        if filters.state is not None and wanted is None:
            wanted = JobStatus(filters.state.upper())
        async with open_tables(environment) as database:
            found = await SqlJobStore(database).jobs(limit=filters.limit, status=wanted)
        return [_entry(record) for record in found]

    async def answer(
        self, environment: Mapping[str, str], run: Run, request: AnswerRequest
    ) -> Mapping[str, Any]:
        """Send the update of the verb; `retry` takes corrected parameters as a JSON object.

        Raises:
            InvalidRequest: The parameters are not a JSON object.
            ServiceError: There is no such open run, it refused, or no worker answered.
        """
        parameters = correction_of(request.correction, "parameters")
        return await send_answer(environment, run, request, parameters=parameters)

    def report(
        self, environment: Mapping[str, str], run: Run
    ) -> AbstractAsyncContextManager[Report]:
        """No run offers one."""
        raise InvalidRequest(f"{run.workflow_id} has no report")


def _entry(record: JobRecord) -> RunEntry:
    is_open = record.status in _OPEN
    return RunEntry(
        workflow_id=job_workflow_id(record.job_id),
        name=job_workflow_id(record.job_id),
        pipeline="jobs",
        type=record.job_type,
        state=_RUNNING if record.status in _OPEN[:2] else record.status.lower(),
        since=record.updated_at,
        note=record.error_details,
        is_open=is_open,
        columns={"stage": f"{record.stage}/{record.total_stages}"},
        row=record.model_dump(mode="json", exclude={"parameters", "stage_results", "result_data"}),
    )


VERBS: Final[RunVerbs] = JobVerbs()
