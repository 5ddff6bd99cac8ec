"""Tables, blobs and queues around the steps of documents, and a way to take the steps."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.batches.document_group import DocumentGroups
from activities.batches.document_load import DocumentLoads
from activities.batches.document_store import SqlLoadStore
from activities.batches.store import SqlBatchStore
from adapters.database.engine import Database, open_database
from adapters.database.models.base import metadata
from adapters.files.texts.pool import FileTexts
from tests.support.fresh_database import fresh_url
from tests.support.memory.blobs import MemoryBlobs
from tests.support.memory.cloud import MemoryCloud, MemoryQueue
from workflows.batches.events import JobStarted
from workflows.batches.loads import (
    DOCUMENT_EVENT,
    STEPS,
    DocumentAttachments,
    DocumentEvent,
    DocumentGroupInput,
    DocumentLoadInput,
    DocumentProcessed,
    GivenUp,
    GiveUp,
    GroupOutcome,
    GroupProgress,
    LoadStep,
    LoadStepInput,
    StepOutcome,
    message_key,
)
from workflows.batches.names import BatchKey, names_of
from workflows.shared.contracts import BlobRef, Origin

KEY = BatchKey(case_id=7, batch_id=3)
PREFIX = "test"
NAMES = names_of(PREFIX, KEY)


@dataclass
class DocumentLoading:
    """Everything that the steps ask for."""

    folder: Path
    database: Database
    texts: FileTexts
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    cloud: MemoryCloud = field(default_factory=MemoryCloud)

    def __post_init__(self) -> None:
        self.store = SqlLoadStore(self.database)
        self.batches = SqlBatchStore(self.database)
        for name in (NAMES.queue, NAMES.dead_letters):
            self.cloud.queues_by_name[name] = MemoryQueue("owner", datetime.now(UTC))

    @property
    def scratch(self) -> Path:
        """Folder for temporary files."""
        return self.folder / "scratch"

    def worker(self) -> DocumentLoads:
        """The activities, as a worker that has just started has them."""
        return DocumentLoads(
            self.store,
            self.batches,
            self.blobs,
            self.texts,
            self.cloud.queues,
            PREFIX,
            self.scratch,
        )

    def groups(self) -> DocumentGroups:
        """The activity that loads groups, as a worker that has just started has it."""
        return DocumentGroups(self.store, self.blobs, self.texts, self.worker(), self.scratch)

    async def load_group(
        self, *events: DocumentEvent, attempt: int = 1, heartbeat: GroupProgress | None = None
    ) -> Sequence[GroupOutcome]:
        """Load messages together: in the first attempt, or in one that follows a lost worker."""
        environment = ActivityEnvironment()
        details = () if heartbeat is None else (heartbeat.model_dump(mode="json"),)
        environment.info = replace(environment.info, attempt=attempt, heartbeat_details=details)
        order = DocumentGroupInput(
            key=KEY, loads=tuple(DocumentLoadInput(event=event) for event in events)
        )
        outcomes = (await environment.run(self.groups().load_group, order)).outcomes
        assert not list(self.scratch.glob("*")), "the group leaves temporary files behind"
        return outcomes

    async def put(self, name: str, content: bytes) -> BlobRef:
        """Keep a blob."""
        file = self.folder / "put"
        file.write_bytes(content)
        return await self.blobs.upload(file, name)

    async def get(self, name: str) -> bytes:
        """The bytes of a blob."""
        file = self.folder / "got"
        await self.blobs.download(name, file)
        return file.read_bytes()

    async def send(
        self, document_id: str, content: bytes, filename: str | None = None, **fields: Any
    ) -> DocumentProcessed:
        """Keep a document; the message that announces it."""
        name = f"in/{document_id}"
        await self.put(name, content)
        return DocumentProcessed(
            **{
                "case_id": KEY.case_id,
                "batch_id": KEY.batch_id,
                "document_id": document_id,
                "blob_name": name,
                "filename": filename,
                **fields,
            }
        )

    async def take(
        self, step: LoadStep, event: DocumentEvent, source: BlobRef | None = None
    ) -> StepOutcome:
        """Take one step, on a worker of its own."""
        origin = Origin(queue=NAMES.queue, message_id="m", digest=message_key(event))
        order = LoadStepInput(event=event, step=step, source=source, origin=origin)
        run = getattr(self.worker(), step.value)
        outcome = await ActivityEnvironment().run(run, order)
        assert not list(self.scratch.glob("*")), "the step leaves temporary files behind"
        return outcome

    async def load(self, event: DocumentEvent) -> Mapping[LoadStep, StepOutcome]:
        """Take every step, as the run of a document does."""
        source: BlobRef | None = None
        outcomes: dict[LoadStep, StepOutcome] = {}
        for step in STEPS[event.event_type]:
            outcomes[step] = await self.take(step, event, source)
            source = outcomes[step].source or source
            if outcomes[step].duplicate_of is not None or outcomes[step].superseded:
                break
        return outcomes

    async def load_family(self, event: DocumentEvent) -> list[DocumentProcessed]:
        """Take every step of a document and of those that its steps announce, as a batch does."""
        waiting, loaded = [event], list[DocumentProcessed]()
        while waiting:
            await self.load(waiting.pop(0))
            sent = [DOCUMENT_EVENT.validate_json(body) for body in self.announced()]
            members = [each for each in sent if isinstance(each, DocumentProcessed)]
            waiting += members
            loaded += members
        return loaded

    def announced(self) -> list[str]:
        """Take the messages out of the queue of the batch."""
        queue = self.cloud.queues_by_name[NAMES.queue]
        bodies = [str(body) for body in queue.messages]
        queue.messages.clear()
        return bodies

    async def give_up(self, event: DocumentEvent, reason: str = "it is cut off") -> GivenUp:
        """Give a document up that cannot be read."""
        lost = GiveUp(event=event, step=LoadStep.EXTRACT, reason=reason)
        return await ActivityEnvironment().run(self.worker().give_up, lost)

    async def start_batch(self) -> None:
        """Make the row of the batch, in `processing`."""
        started = JobStarted(case_id=KEY.case_id, batch_id=KEY.batch_id)
        await self.batches.note(KEY.case_id, [started])
        assert await self.batches.claim(KEY, [])

    async def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """What stands in some columns of a table, in order."""
        found = metadata.tables[table]
        chosen = [found.c[name] for name in columns]
        async with self.database.reading() as connection:
            return [
                tuple(row) for row in await connection.execute(select(*chosen).order_by(*chosen))
            ]


@asynccontextmanager
async def document_loading(folder: Path, texts: FileTexts) -> AsyncGenerator[DocumentLoading]:
    """What the steps ask for, in a folder, with a database of their own."""
    url = fresh_url()
    async with open_database(url) as database:
        loading = DocumentLoading(folder, database, texts)
        await loading.start_batch()
        yield loading


def failure_of(error: BaseException) -> tuple[str | None, str]:
    """Type and message of what an activity raised."""
    assert isinstance(error, ApplicationError)
    return error.type, error.message


def attachments_of(*names: str) -> DocumentAttachments:
    """A message that attaches blobs to a document."""
    return DocumentAttachments.model_validate(
        {
            "case_id": KEY.case_id,
            "batch_id": KEY.batch_id,
            "document_id": "D-1",
            "attachments": [{"blob_name": name, "filename": name[-5:]} for name in names],
        }
    )
