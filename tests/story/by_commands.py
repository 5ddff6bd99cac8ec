"""The story by the commands of `docflow`."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.story.tellers import Problem
from tests.support.cli import run_docflow_in_thread
from workers.shared.cli.context import CliContext


class ByCommands:
    """A person at a terminal.

    Args:
        environment: Where the gateway is, and the token.
        folder: For files that are fetched or sent.
    """

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = environment
        self._folder = folder

    async def _says(self, *arguments: str) -> str:
        context = CliContext(self._environment)
        done = await run_docflow_in_thread(*arguments, context=context)
        assert done.exit_code == 0, done.output
        return done.stdout

    async def _json(self, *arguments: str) -> Any:
        return json.loads(await self._says(*arguments, "-o", "json"))

    async def state(self, run: str) -> str:
        return (await self._json("show", run))["own_state"].lower()

    async def retry(self, run: str) -> None:
        await self._says("retry", run)

    async def send_document(self, file: Path, message: Mapping[str, str]) -> str:
        fields = {"document_type": "--type", "project_id": "--project", "task_id": "--task"}
        given = [word for name, value in message.items() for word in (fields[name], value)]
        made = await self._json("import", "submit", str(file), *given, "--no-follow")
        return made["id"]

    async def problems(self, run: str) -> Sequence[Problem]:
        found = (await self._json("show", run))["details"]["problems"]
        return [(each["line"], each["column"], each["reason"]) for each in found]

    async def report(self, run: str) -> Path:
        target = self._folder / "report.xlsx"
        await self._says("report", run, "--out", str(target))
        return target

    async def upload(self, file: Path, import_type: str, context: int) -> str:
        given = ("--type", import_type, "--context", str(context))
        return (await self._json("upload", "submit", str(file), *given))["id"]

    async def open_columns(self, run: str) -> Mapping[str, int]:
        found = await self._json("upload", "columns", _uuid(run))
        return {each["header"]: each["id"] for each in found if each["status"] == "UNRESOLVED"}

    async def decide_column(self, run: str, column: int, field: str) -> None:
        await self._says("upload", "columns", _uuid(run), "--set", f"{column}={field}")

    async def open_values(self, run: str) -> Mapping[str, int]:
        found = await self._json("upload", "values", _uuid(run), "--open")
        return {each["value"]: each["id"] for each in found}

    async def decide_value(self, run: str, value: int, field: str, meaning: str) -> None:
        asked = ("--candidates", field, "--text", meaning)
        found = await self._json("upload", "values", _uuid(run), *asked)
        [id] = [each["id"] for each in found if each["name"] == meaning]
        await self._says("upload", "values", _uuid(run), "--set", f"{value}={id}")

    async def confirm(self, run: str, what: str) -> None:
        await self._says("upload", "confirm", _uuid(run), what)

    async def undo(self, run: str) -> None:
        await self._says("upload", "undo", _uuid(run))

    async def undo_state(self, run: str) -> str:
        return (await self._json("upload", "show", _uuid(run)))["undo"]["state"].lower()

    async def start_batch(self, case: int) -> None:
        await self._says("batch", "start", f"{case}/1")

    async def finish_batch(self, case: int) -> None:
        await self._says("batch", "finish", f"{case}/1")

    async def end_batch(self, case: int) -> None:
        await self._says("batch", "finish", f"{case}/1", "--end")

    async def redrive_batch(self, case: int, *, with_failed: bool) -> None:
        options = ("--with-failed",) if with_failed else ()
        await self._says("batch", "redrive", f"{case}/1", *options)

    async def phase(self, case: int) -> str:
        return (await self._json("batch", "show", f"{case}/1"))["phase"] or ""

    async def failed_messages(self, case: int) -> Mapping[str, str]:
        found = await self._json("batch", "show", f"{case}/1", "dead-letters")
        return {each["document_id"]: each["reason"] for each in found}

    async def resources(self, case: int) -> str:
        return (await self._json("batch", "show", f"{case}/1", "resources"))["state"]

    async def start_job(self, job_type: str, parameters: Mapping[str, Any], project: str) -> str:
        given: list[str] = []
        for name, value in parameters.items():
            text = value if isinstance(value, str) else json.dumps(value)
            given += ["--param", f"{name}={text}"]
        order = ("job", "submit", job_type, *given, "--project", project, "--no-follow")
        return (await self._json(*order))["id"]

    async def restart_job(self, run: str) -> None:
        await self._says("job", "restart", run.removeprefix("job/"))

    async def send_event(self, event: Mapping[str, Any]) -> str:
        file = self._folder / "event.json"
        file.write_text(json.dumps(event))
        return (await self._json("transfer", "send", str(file), "--no-follow"))["id"]


def _uuid(run: str) -> str:
    return run.removeprefix("spreadsheet/")
