"""The story by HTTP: what any program can send to `/api/v1`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.story.tellers import Problem


class ByHttp:
    """Speaks to a gateway.

    Args:
        api: Client of the gateway, with a token.
        folder: For files that are fetched.
    """

    def __init__(self, api: httpx.AsyncClient, folder: Path) -> None:
        self._api = api
        self._folder = folder

    async def _ask(self, method: str, path: str, **content: Any) -> Any:
        answer = await self._api.request(method, f"/api/v1{path}", **content)
        assert answer.is_success, answer.text
        return answer.json()

    async def state(self, run: str) -> str:
        return (await self._ask("GET", f"/runs/{run}"))["own_state"].lower()

    async def retry(self, run: str) -> None:
        await self._ask("POST", f"/runs/{run}/retry", json={})

    async def send_document(self, file: Path, message: Mapping[str, str]) -> str:
        form = {"message": json.dumps(message)}
        files = {"file": (file.name, file.read_bytes())}
        return (await self._ask("POST", "/documents", data=form, files=files))["id"]

    async def problems(self, run: str) -> Sequence[Problem]:
        found = (await self._ask("GET", f"/documents/{run}"))["problems"]
        return [(each["line"], each["column"], each["reason"]) for each in found]

    async def report(self, run: str) -> Path:
        answer = await self._api.get(f"/api/v1/runs/{run}/report")
        assert answer.is_success, answer.text
        target = self._folder / "report.xlsx"
        target.write_bytes(answer.content)
        return target

    async def upload(self, file: Path, import_type: str, context: int) -> str:
        form = {"import_type": import_type, "context_id": str(context)}
        files = {"file": (file.name, file.read_bytes())}
        return (await self._ask("POST", "/uploads", data=form, files=files))["id"]

    async def open_columns(self, run: str) -> Mapping[str, int]:
        found = (await self._ask("GET", f"/uploads/{_uuid(run)}/columns"))["items"]
        return {each["header"]: each["id"] for each in found if each["status"] == "UNRESOLVED"}

    async def decide_column(self, run: str, column: int, field: str) -> None:
        decisions = {"decisions": [{"id": column, "target": field}]}
        await self._ask("PATCH", f"/uploads/{_uuid(run)}/columns", json=decisions)

    async def open_values(self, run: str) -> Mapping[str, int]:
        wanted = {"status": "UNRESOLVED"}
        found = await self._ask("GET", f"/uploads/{_uuid(run)}/values", params=wanted)
        return {each["value"]: each["id"] for each in found["items"]}

    async def decide_value(self, run: str, value: int, field: str, meaning: str) -> None:
        asked = {"field": field, "text": meaning}
        found = await self._ask("GET", f"/uploads/{_uuid(run)}/candidates", params=asked)
        [id] = [each["id"] for each in found["items"] if each["name"] == meaning]
        decisions = {"decisions": [{"id": value, "target_id": id}]}
        await self._ask("PATCH", f"/uploads/{_uuid(run)}/values", json=decisions)

    async def confirm(self, run: str, what: str) -> None:
        await self._ask("POST", f"/uploads/{_uuid(run)}/confirm", json={"what": what})

    async def undo(self, run: str) -> None:
        await self._ask("POST", f"/uploads/{_uuid(run)}/undo")

    async def undo_state(self, run: str) -> str:
        return (await self._ask("GET", f"/uploads/{_uuid(run)}/undo"))["state"].lower()

    async def start_batch(self, case: int) -> None:
        await self._ask("POST", f"/batches/{case}/1/start")

    async def finish_batch(self, case: int) -> None:
        await self._ask("POST", f"/batches/{case}/1/finish")

    async def end_batch(self, case: int) -> None:
        await self._ask("POST", f"/batches/{case}/1/end")

    async def redrive_batch(self, case: int, *, with_failed: bool) -> None:
        await self._ask("POST", f"/batches/{case}/1/redrive", json={"with_failed": with_failed})

    async def phase(self, case: int) -> str:
        return (await self._ask("GET", f"/batches/{case}/1"))["phase"] or ""

    async def failed_messages(self, case: int) -> Mapping[str, str]:
        found = (await self._ask("GET", f"/batches/{case}/1/failed-messages"))["items"]
        return {each["document_id"]: each["reason"] for each in found}

    async def resources(self, case: int) -> str:
        return (await self._ask("GET", f"/batches/{case}/1/resources"))["state"]

    async def start_job(self, job_type: str, parameters: Mapping[str, Any], project: str) -> str:
        order = {"job_type": job_type, "parameters": parameters, "project": project}
        return (await self._ask("POST", "/jobs", json=order))["id"]

    async def restart_job(self, run: str) -> None:
        await self._ask("POST", f"/jobs/{run.removeprefix('job/')}/restart")

    async def send_event(self, event: Mapping[str, Any]) -> str:
        return (await self._ask("POST", "/transfers", json=event))["id"]


def _uuid(run: str) -> str:
    return run.removeprefix("spreadsheet/")
