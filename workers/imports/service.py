"""Import runs for the gateway: where one stands, and answers of people to it."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from workers import catalogue
from workers.imports.messages import read_message, upload_name
from workers.shared.register import Run, recognise
from workers.shared.services.bodies import RefusedMessage
from workers.shared.services.errors import (
    InvalidRequest,
    NotFound,
    Refused,
    ServiceError,
    WrongState,
)
from workers.shared.services.identity import Identity, require_import, require_operator
from workers.shared.services.run_actions import Report
from workflows.imports.messages import DocumentType, ImportMessage, encoded
from workflows.imports.runs import ImportState, ImportStatus, Retry, TaskKey
from workflows.imports.types import REGISTRY
from workflows.shared.contracts import Answer, BlobRef

if TYPE_CHECKING:
    from activities.imports.views import ImportTaskRow, SqlImportTasks
    from adapters.ports.blobs import Blobs
    from adapters.types.store import SqlDeclaredTypes
    from workers.imports.runs import ImportRuns


_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    DocumentType.SCHEDULE_UPLOAD: ("temp_blob_name", "original_filename")
}
_FILE: Final = ("blob_name", "filename")
"""Fields of a message that name its document, for the blob store and for its user."""


def file_fields(document_type: str) -> tuple[str, str]:
    """Fields of a message that name its document, for the blob store and for its user."""
    return _FIELDS.get(document_type, _FILE)


@dataclass(frozen=True)
class CorrectedFile:
    """A document that a person gives in place of the one that could not be read."""

    filename: str
    store: Callable[[str], Awaitable[BlobRef]]
    """Writes it to the blob of this name."""


@dataclass(frozen=True)
class RunAnswer:
    """A person's answer to a run."""

    verb: str
    by: str | None = None
    reason: str | None = None
    message: ImportMessage | None = None
    changes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    file: CorrectedFile | None = None

    def as_contract(self) -> Retry | Answer:
        """As the run takes it, without the file."""
        if self.verb == "retry":
            return Retry(
                message=self.message, changes=dict(self.changes), by=self.by, reason=self.reason
            )
        return Answer(reason=self.reason, by=self.by)


class ImportAnswers:
    """Sends answers to import runs.

    Args:
        runs: Temporal.
        tasks: Status rows.
        blobs: Where corrected documents go.
    """

    def __init__(self, runs: "ImportRuns", tasks: "SqlImportTasks", blobs: "Blobs") -> None:
        self._runs = runs
        self._tasks = tasks
        self._blobs = blobs

    async def send(self, run: Run, answer: RunAnswer) -> ImportStatus:
        """Send an answer and wait until it is applied.

        A corrected file is stored first, under a name of its own: the first one stays.

        Raises:
            InvalidRequest: A file is given, and the document type takes none.
            WrongState: A file is given, and the run is not parked.
            ServiceError: See `ImportRuns.answer`.
        """
        stored, changes = None, dict(answer.changes)
        if answer.file is not None:
            stored = await self._stored(run, answer.file, changes)
        contract = replace(answer, changes=changes).as_contract()
        try:
            return await self._runs.answer(run.workflow_id, answer.verb, contract)
        except (NotFound, Refused):
            # Of any other failure it is not known whether the run has the answer, and the file.
            if stored is not None:
                await self._blobs.delete(stored.name)
            raise

    async def _stored(self, run: Run, file: CorrectedFile, changes: dict[str, Any]) -> BlobRef:
        """Store a corrected file and name it in the changes."""
        key = cast(TaskKey, run.key)
        row = await self._tasks.get(key.project_id, key.task_id)
        if row is None or row.state is not ImportState.PARKED:
            state = "not there" if row is None else row.state.value
            raise WrongState(
                f"{run.workflow_id} is {state}: only a parked import takes a corrected file",
                workflow_id=run.workflow_id,
            )
        facts = REGISTRY.get(row.document_type)  # a declared type always has a document
        if facts is not None and not facts.needs_blob:
            raise InvalidRequest(f"{row.document_type} works on what is stored: no file")
        name = upload_name(key.project_id, key.task_id, file.filename, secrets.token_hex(4))
        stored = await file.store(name)
        blob, filename = file_fields(row.document_type)
        changes |= {blob: stored.name, filename: file.filename[-255:]}
        return stored


async def report_of(tasks: "SqlImportTasks", blobs: "Blobs", key: TaskKey, name: str) -> Report:
    """The spreadsheet of the rejected rows of an import, not yet fetched.

    Args:
        tasks: Status rows.
        blobs: Where reports are.
        key: The import.
        name: Names it for people.

    Raises:
        NotFound: There is no such import.
        WrongState: It has no report; the message says why.
    """
    row = await tasks.get(key.project_id, key.task_id)
    if row is None:
        raise NotFound(f"there is no import {name}; `docflow list` shows what there is")
    if row.report is None:
        raise WrongState(f"{name} has no report: {_no_report(row)}")
    blob, count = row.report.name, row.problem_count
    return Report(
        f"{encoded(key.task_id)}-problems.xlsx",
        lambda target: blobs.download(blob, target),
        f"{count:,} problem{'' if count == 1 else 's'}; correct the rows and submit it as a new "
        "task",
    )


def _no_report(row: "ImportTaskRow") -> str:
    if row.problems_removed_at is not None:
        return f"its time was over, and it was removed at {row.problems_removed_at:%Y-%m-%d}"
    return "no row was rejected or left out" if row.problem_count == 0 else f"it is {row.state}"


PIPELINE: Final = "imports"
LARGEST_FILE: Final = 500_000_000
"""Bytes of a corrected document."""


class ImportService:
    """What operators see of imports, and do to them.

    Args:
        runs: Temporal.
        tasks: Status rows.
        blobs: Where corrected documents go.
        types: The declared types, which say who may import their rows.
    """

    def __init__(
        self,
        runs: "ImportRuns",
        tasks: "SqlImportTasks",
        blobs: "Blobs",
        types: "SqlDeclaredTypes",
    ) -> None:
        self._runs = runs
        self._tasks = tasks
        self._blobs = blobs
        self._types = types
        self._answers = ImportAnswers(runs, tasks, blobs)

    async def get(
        self, who: Identity, id: str, status: ImportStatus | None = None
    ) -> "ImportTaskRow":
        """Where an import stands.

        Args:
            who: The caller.
            id: Workflow id.
            status: What its run has just said; None: it is asked.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is no such import.
        """
        run = _run(who, id)
        key = cast(TaskKey, run.key)
        row = await self._tasks.get(key.project_id, key.task_id)
        if row is None:
            raise NotFound(f"there is no import {key.project_id}/{key.task_id}")
        if row.state is ImportState.SKIPPED:
            with suppress(ServiceError):
                ended = await self._runs.result(run.workflow_id)
                row = row.model_copy(update={"earlier": ended.earlier})
        now = status or await self._runs.status(run.workflow_id)
        return row if now is None else row.reported(now, run.kind.answers)

    async def document(
        self, who: Identity, id: str
    ) -> tuple["ImportTaskRow | None", ImportMessage | None]:
        """The row of an import, and its message as far as a worker answers.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is no such import.
        """
        run = _run(who, id)
        row = await self._tasks.get(run.key.project_id, run.key.task_id)
        return row, await self._runs.message(run.workflow_id)

    async def answer(self, who: Identity, id: str, answer: RunAnswer) -> "ImportTaskRow":
        """Answer a run, in the name of the caller; the import afterwards.

        Raises:
            Forbidden: The caller is not an operator, or lacks a role that the type needs.
            InvalidRequest: There is no such answer.
            ServiceError: See `ImportAnswers.send`.
        """
        run = _run(who, id)
        row = await self._tasks.get(run.key.project_id, run.key.task_id)
        if row is not None:
            named = answer.changes.get("type_digest", getattr(answer.message, "type_digest", None))
            types = await self._types.written_by(row.document_type, named and f"{named}")
            require_import(who, None, types)
        if answer.verb not in run.kind.answers:
            known = ", ".join(run.kind.answers)
            raise InvalidRequest(f"there is no answer {answer.verb!r}; there are {known}")
        return await self.get(who, id, await self._answers.send(run, answer))

    @asynccontextmanager
    async def report(self, who: Identity, id: str) -> AsyncGenerator[Report]:
        """The spreadsheet of rejected rows.

        Raises:
            Forbidden: The caller is not an operator.
            NotFound: There is no such import.
            WrongState: It has no report; the message says why.
        """
        run = _run(who, id)
        yield await report_of(self._tasks, self._blobs, run.key, id)

    async def retry_with(
        self,
        who: Identity,
        id: str,
        filename: str,
        content: Callable[[], AsyncIterator[bytes]],
        changes: Mapping[str, Any],
    ) -> "ImportTaskRow":
        """Try again with a corrected document, which is streamed."""
        file = CorrectedFile(filename, lambda name: self._blobs.write(name, content()))
        answer = RunAnswer("retry", by=who.subject, changes=changes, file=file)
        return await self.answer(who, id, answer)


def _run(who: Identity, id: str) -> Run:
    require_operator(who, "imports")
    run = recognise(catalogue.PIPELINES, id)
    if run is None or run.pipeline.name != PIPELINE or not run.kind.answers:
        raise NotFound(f"{id!r} is not an import; its id reads import/PROJECT/TASK")
    return run


def corrected(body: bytes | None) -> ImportMessage | None:
    """The message that corrects an import; None: there is none.

    Raises:
        InvalidRequest: It is not one.
    """
    if body is None:
        return None
    try:
        return read_message(body, declared=None)
    except RefusedMessage as refused:
        raise InvalidRequest(f"the corrected message: {refused.description}") from refused
