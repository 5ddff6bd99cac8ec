"""The story by the Python client, `docflow.client`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docflow.client import AsyncClient
from tests.story.tellers import Problem


class ByClient:
    """A program that uses the client.

    Args:
        docflow: The client.
        folder: For files that are fetched.
    """

    def __init__(self, docflow: AsyncClient, folder: Path) -> None:
        self._docflow = docflow
        self._folder = folder

    async def state(self, run: str) -> str:
        return (await self._docflow.get_run(run)).own_state.lower()

    async def retry(self, run: str) -> None:
        await self._docflow.answer_run(run, "retry")

    async def send_document(self, file: Path, message: Mapping[str, str]) -> str:
        return (await self._docflow.submit_document(message=message, file=file)).id

    async def problems(self, run: str) -> Sequence[Problem]:
        found = (await self._docflow.get_document(run)).problems
        return [(each.line or 0, each.column or "", each.reason) for each in found]

    async def report(self, run: str) -> Path:
        return await self._docflow.get_run_report(run, self._folder / "report.xlsx")

    async def upload(self, file: Path, import_type: str, context: int) -> str:
        made = await self._docflow.create_upload(
            import_type=import_type, file=file, context_id=context
        )
        return made.id

    async def open_columns(self, run: str) -> Mapping[str, int]:
        found = (await self._docflow.list_upload_columns(_uuid(run))).items
        return {each.header: each.id for each in found if each.status == "UNRESOLVED"}

    async def decide_column(self, run: str, column: int, field: str) -> None:
        decisions = [{"id": column, "target": field}]
        await self._docflow.decide_upload_columns(_uuid(run), decisions=decisions)

    async def open_values(self, run: str) -> Mapping[str, int]:
        values = self._docflow.pages(
            self._docflow.list_upload_values, _uuid(run), status="UNRESOLVED"
        )
        return {each.value: each.id async for each in values}

    async def decide_value(self, run: str, value: int, field: str, meaning: str) -> None:
        found = await self._docflow.list_upload_candidates(_uuid(run), field=field, text=meaning)
        [id] = [each.id for each in found.items if each.name == meaning]
        decisions = [{"id": value, "target_id": id}]
        await self._docflow.decide_upload_values(_uuid(run), decisions=decisions)

    async def confirm(self, run: str, what: str) -> None:
        await self._docflow.confirm_upload(_uuid(run), what=what)

    async def undo(self, run: str) -> None:
        await self._docflow.undo_upload(_uuid(run))

    async def undo_state(self, run: str) -> str:
        return (await self._docflow.get_undo(_uuid(run))).state.lower()

    async def start_batch(self, case: int) -> None:
        await self._docflow.start_batch(case, 1)

    async def finish_batch(self, case: int) -> None:
        await self._docflow.finish_batch(case, 1)

    async def end_batch(self, case: int) -> None:
        await self._docflow.end_batch(case, 1)

    async def redrive_batch(self, case: int, *, with_failed: bool) -> None:
        await self._docflow.redrive_batch(case, 1, with_failed=with_failed)

    async def phase(self, case: int) -> str:
        return (await self._docflow.get_batch(case, 1)).phase or ""

    async def failed_messages(self, case: int) -> Mapping[str, str]:
        found = (await self._docflow.list_failed_messages(case, 1)).items
        return {each.document_id or "": each.reason for each in found}

    async def resources(self, case: int) -> str:
        return (await self._docflow.list_batch_resources(case, 1)).state

    async def start_job(self, job_type: str, parameters: Mapping[str, Any], project: str) -> str:
        made = await self._docflow.start_job(
            job_type=job_type, parameters=parameters, project=project
        )
        return made.id

    async def restart_job(self, run: str) -> None:
        await self._docflow.continue_job(run.removeprefix("job/"))

    async def send_event(self, event: Mapping[str, Any]) -> str:
        return (await self._docflow.send_event(body=event)).id


def _uuid(run: str) -> str:
    return run.removeprefix("spreadsheet/")
