"""Answers of people to import runs, with a corrected file where there is one."""

import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from contracts.blobs import BlobRef
from contracts.imports import Answer, DocumentType, ImportMessage, ImportState, ImportStatus, Retry
from domain.imports.chunks import TaskKey
from domain.imports.registry import REGISTRY
from workers.pipelines.base import Run
from workers.services.errors import InvalidRequest, NotFound, Refused, WrongState
from workers.services.imports.documents import upload_name

if TYPE_CHECKING:
    from adapters.database.imports.views import SqlImportTasks
    from adapters.ports import Blobs
    from workers.services.imports.runs import ImportRuns

_FIELDS: Final[Mapping[DocumentType, tuple[str, str]]] = {
    DocumentType.SCHEDULE_UPLOAD: ("temp_blob_name", "original_filename")
}
_FILE: Final = ("blob_name", "filename")
"""Fields of a message that name its document, for the blob store and for its user."""


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
            return Retry(message=self.message, changes=dict(self.changes), by=self.by)
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
        if not REGISTRY[row.document_type].needs_blob:
            raise InvalidRequest(f"{row.document_type.value} works on what is stored: no file")
        name = upload_name(key.project_id, key.task_id, file.filename, secrets.token_hex(4))
        stored = await file.store(name)
        blob, filename = _FIELDS.get(row.document_type, _FILE)
        changes |= {blob: stored.name, filename: file.filename[-255:]}
        return stored
