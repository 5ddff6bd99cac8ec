"""The story by the Temporal CLI alone, as the documentation says: no gateway is asked."""

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stack.temporal import temporal_binary
from tests.story.site import PERSON
from tests.story.tellers import Problem


class Refused(Exception):
    """What was asked of a worker was refused; the message says why."""


class ByTemporal:
    """An operator with `temporal`, and with the folder, or container, of the documents.

    Args:
        environment: Where Temporal is.
        blobs: The container of the documents.
        organisation: Whose uploads these are.
    """

    def __init__(self, environment: Mapping[str, str], blobs: Path, organisation: int) -> None:
        self._environment = environment
        self._blobs = blobs
        self._organisation = organisation

    async def _temporal(self, *arguments: str) -> Any:
        running = await asyncio.create_subprocess_exec(
            *(temporal_binary(), "workflow", *arguments, "--output", "json"),
            env=dict(self._environment),
            stdout=PIPE,
            stderr=PIPE,
        )
        output, errors = await running.communicate()
        assert running.returncode == 0, errors.decode()
        return json.loads(output)

    async def errand(self, pipeline: str, kind: str, arguments: Mapping[str, Any]) -> Any:
        """Ask something of a worker; its answer."""
        order = json.dumps({"kind": kind, "arguments": arguments, "by": PERSON})
        started = ("--type", "Errand", "--task-queue", pipeline, "--execution-timeout", "1m")
        result = (await self._temporal("execute", *started, "--input", order))["result"]
        if result["refused"] is not None:
            raise Refused(result["problem"])
        return json.loads(result["answer"])

    async def _update(self, run: str, name: str, **answer: Any) -> Any:
        given = json.dumps({"by": PERSON, **answer})
        sent = ("--workflow-id", run, "--name", name, "--input", given)
        return (await self._temporal("update", "execute", *sent))["result"]

    async def _query(self, run: str, name: str) -> Any:
        asked = ("--workflow-id", run, "--name", name)
        [found] = (await self._temporal("query", *asked))["queryResult"]
        return found

    def _stored(self, file: Path, run: str) -> str:
        name = f"inbox/{run}-{self._organisation}/{file.name}"
        target = self._blobs / name
        target.parent.mkdir(parents=True)
        shutil.copyfile(file, target)
        return name

    async def state(self, run: str) -> str:
        found = await self._query(_answering(run), "status")
        return (found.get("state") or found["status"]).lower()

    async def retry(self, run: str) -> None:
        await self._update(_answering(run), "retry")

    async def send_document(self, file: Path, message: Mapping[str, str]) -> str:
        stored = {"blob_name": self._stored(file, "document"), "filename": file.name}
        return (await self.errand("imports", "start", {**message, **stored}))["id"]

    async def problems(self, run: str) -> Sequence[Problem]:
        found = (await self._query(run, "status"))["outcome"]["problems"]
        return [(each["line"], each["column"], each["reason"]) for each in found]

    async def report(self, run: str) -> Path:
        return self._blobs / (await self._query(run, "status"))["outcome"]["report"]["name"]

    async def upload(self, file: Path, import_type: str, context: int) -> str:
        asked = {
            "import_type": import_type,
            "organisation_id": self._organisation,
            "context_id": context,
            "blob_name": self._stored(file, "upload"),
        }
        return (await self.errand("spreadsheets", "start", asked))["id"]

    async def open_columns(self, run: str) -> Mapping[str, int]:
        found = (await self._query(run, "column_mappings"))["columns"]
        return {each["header"]: each["id"] for each in found if each["status"] == "UNMATCHED"}

    async def decide_column(self, run: str, column: int, field: str) -> None:
        await self._update(
            run, "update_column_mappings", decisions=[{"id": column, "target": field}]
        )

    async def open_values(self, run: str) -> Mapping[str, int]:
        found = (await self._query(run, "cell_mappings"))["first_open"]
        return {each["value"]: each["id"] for each in found}

    async def decide_value(self, run: str, value: int, field: str, meaning: str) -> None:
        lists = (await self._query(run, "candidates"))["fields"]
        [first] = [each["first"] for each in lists if each["field"] == field]
        [id] = [each["id"] for each in first if each["name"] == meaning]
        decisions = [{"id": value, "target_id": id}]
        await self._update(run, "update_cell_mappings", decisions=decisions)

    async def confirm(self, run: str, what: str) -> None:
        part = {"columns": "column", "values": "cell"}[what]
        await self._update(run, f"confirm_{part}_mappings")

    async def undo(self, run: str) -> None:
        uuid = run.removeprefix("spreadsheet/")
        order = {
            "uuid": uuid,
            "organisation_id": self._organisation,
            "by": PERSON,
            "filename": "registrations.xlsx",
            "requested_at": datetime.now(UTC).isoformat(),
        }
        await self._temporal(
            *("start", "--type", "SpreadsheetUndo", "--task-queue", "spreadsheets"),
            *("--workflow-id", f"spreadsheet-undo/{uuid}", "--input", json.dumps(order)),
        )

    async def undo_state(self, run: str) -> str:
        undo = run.replace("spreadsheet/", "spreadsheet-undo/")
        return (await self._temporal("result", "--workflow-id", undo))["result"]["state"].lower()

    async def _event(self, event_type: str, case: int, **more: Any) -> None:
        event = {"eventType": event_type, "caseId": case, "batchId": 1, **more}
        await self.errand("batches", "start", event)

    async def start_batch(self, case: int) -> None:
        await self._event("JOB_STARTED", case)

    async def finish_batch(self, case: int) -> None:
        await self._event("JOB_FINISHED", case)

    async def end_batch(self, case: int) -> None:
        await self._event("BATCH_END_FINISHED", case)

    async def redrive_batch(self, case: int, *, with_failed: bool) -> None:
        await self._event("REDRIVE_REQUESTED", case, withFailed=with_failed)

    async def phase(self, case: int) -> str:
        return (await self._query(f"batch/{case}/1", "status"))["phase"]

    async def failed_messages(self, case: int) -> Mapping[str, str]:
        asked = {"case_id": case, "batch_id": 1, "limit": 50}
        found = await self.errand("batches", "batch-failed-messages", asked)
        return {each["document_id"]: each["reason"] for each in found}

    async def resources(self, case: int) -> str:
        batch = {"case_id": case, "batch_id": 1}
        return (await self.errand("batches", "batch-resources", batch))["state"]

    async def start_job(self, job_type: str, parameters: Mapping[str, Any], project: str) -> str:
        order = {"job_type": job_type, "parameters": parameters, "project": project}
        return (await self.errand("jobs", "start", order))["id"]

    async def restart_job(self, run: str) -> None:
        await self.errand("jobs", "restart", {"job": run.removeprefix("job/")})

    async def send_event(self, event: Mapping[str, Any]) -> str:
        return (await self.errand("transfers", "start", event))["id"]


def _answering(run: str) -> str:
    """The run that takes the answers: that of the actions, where an event was routed."""
    return f"{run}/job" if run.startswith("transfer/") else run
