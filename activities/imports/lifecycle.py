"""First and last step of every import, and the steps of messages without rows."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from temporalio import activity

from activities.imports.ports import EarlierImport, WholeImport
from activities.imports.rows import INLINE_BYTES, note_of
from activities.imports.store import SqlImportStore
from activities.imports.table_reader import TableReader
from activities.shared.failures import (
    Heartbeater,
    WorkerThread,
    announces,
    carried_through,
    hands_over,
    translate_failures,
)
from activities.shared.records import reason_of
from activities.shared.scratch import refuse_replaced, scratch_folder
from adapters.files.documents import FileDocuments
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound, PortError, Unavailable
from adapters.ports.records import RejectedMessages, Runs
from workflows.imports.findings import foreign_blob
from workflows.imports.messages import (
    AnyTableMessage,
    DeleteMessage,
    FileMessage,
    ImportMessage,
    ScheduleUploadMessage,
    Strategy,
)
from workflows.imports.messages import workflow_id as workflow_id_of
from workflows.imports.runs import (
    Closing,
    Handler,
    HandlerInput,
    HandlerOutcome,
    ImportInput,
    ImportPlan,
    ImportState,
    Preparation,
    RowChunk,
    TaskKey,
    TypeInfo,
)
from workflows.imports.types import TableSpec, with_defaults
from workflows.imports.validation import code_columns
from workflows.shared.contracts import BlobRef, body_of
from workflows.shared.errors import KEY_REUSED, InvalidDocument, RuleViolation
from workflows.shared.sections import SECTION


class UploadImports:
    """Uploads of schedule files.

    Args:
        store: Tables.
        blobs: Where the files are, before and after.
        scratch: Folder for temporary files.
    """

    def __init__(self, store: SqlImportStore, blobs: Blobs, scratch: Path) -> None:
        self._store = store
        self._blobs = blobs
        self._scratch = scratch

    @activity.defn(name=Handler.STORE_UPLOAD)
    @translate_failures
    @hands_over(HandlerOutcome(unfinished=True))
    async def store_upload(self, work: HandlerInput) -> HandlerOutcome:
        """Copy, verify by hash and register; the temporary file goes with the record of the import.

        A second run finds what the first one left: a target that is a copy already stays as it is.
        In a run that an earlier release planned, the step itself deletes the temporary file, and
        when that is gone after a verified copy, the target is registered as it stands.
        """
        message = work.message
        if not isinstance(message, ScheduleUploadMessage):
            raise RuleViolation(f"{work.plan.facts.document_type} is not an upload")
        source, target = message.source_blob_name, message.target_blob_name
        assert source is not None, "the message is checked to have a source"
        async with Heartbeater():
            original = None if message.direct_upload else await self._original(source)
            if message.direct_upload:
                stored = await self._hashed(target)
            elif original is not None:
                refuse_replaced(original, work.plan.source)
                stored = await self._copy_of(original, target)
            else:
                stored = await self._moved_before(source, target, work.plan.source)
            key = TaskKey(message.project_id, message.task_id)
            counts = await self._store.register_upload(
                key, stored, message.original_filename or message.filename
            )
            if original is not None and not work.plan.delete_source:
                # What was put there meanwhile is a later upload.
                await self._blobs.delete(source, etag=original.etag)
        return HandlerOutcome(
            counts=counts, note=f"{target}: {stored.size} bytes, sha256 {stored.sha256}"[:500]
        )

    async def _original(self, source: str) -> BlobRef | None:
        """The temporary file; None when it is gone."""
        try:
            return await self._hashed(source)
        except BlobNotFound:
            return None

    async def _copy_of(self, original: BlobRef, target: str) -> BlobRef:
        """The target with the bytes of the original, copied unless they are there."""
        try:
            if (await self._blobs.stat(target)).size == original.size:
                stored = await self._hashed(target)
                if stored.sha256 == original.sha256:
                    return stored
        except BlobNotFound:
            pass
        await self._blobs.copy(original.name, target)
        stored = await self._hashed(target)
        if stored.sha256 != original.sha256:
            raise Unavailable(f"the copy {target} differs from {original.name}")
        return stored

    async def _moved_before(self, source: str, target: str, expected: BlobRef | None) -> BlobRef:
        """The target of an earlier attempt, which deleted the source last of all."""
        missing = f"{source} is not there and {target} is not a copy of it"
        try:
            stored = await self._hashed(target)
        except BlobNotFound as error:
            raise BlobNotFound(missing) from error
        if expected is None or stored.size != expected.size:
            raise BlobNotFound(missing)
        return stored

    async def _hashed(self, name: str) -> BlobRef:
        with scratch_folder(self._scratch) as folder:
            return await self._blobs.download(name, folder / "document")


class DeleteImports:
    """Deletes of take-offs and estimates.

    Args:
        store: Tables.
    """

    def __init__(self, store: SqlImportStore) -> None:
        self._store = store

    @activity.defn(name=Handler.DELETE_SERVICE)
    @translate_failures
    @hands_over(HandlerOutcome(unfinished=True))
    async def delete_service(self, work: HandlerInput) -> HandlerOutcome:
        """Delete a service's rows; a service without any is not an error."""
        message, table = work.message, work.plan.facts.table
        if not isinstance(message, DeleteMessage) or table is None:
            raise RuleViolation(f"{work.plan.facts.document_type} deletes no service")
        key = TaskKey(message.project_id, message.task_id)
        async with Heartbeater():
            counts = await self._store.delete_service(key, table, message.service_id)
        note = None if counts.deleted else f"Service {message.service_id} had no rows."
        return HandlerOutcome(counts=counts, note=note)


SMALL_BYTES: Final = INLINE_BYTES
"""Up to this size a document is read before its import begins: twice, where that takes steps."""
_ROW_BY_ROW: Final = frozenset({Strategy.MERGE, Strategy.CREATE_ONLY})
"""Strategies under which a row goes in for what it is, whatever the others are."""


@dataclass(frozen=True, slots=True)
class SmallTable:
    """A table without problems.

    Attributes:
        message: What to import.
        spec: What its table holds.
        chunk: All of its rows.
        note: What the person who reads the result has to know.
    """

    message: AnyTableMessage
    spec: TableSpec
    chunk: RowChunk
    note: str | None


class SmallTables:
    """Reads small tables.

    Args:
        store: Knows the types of tables.
        blobs: Where documents are.
        documents: Opens files.
        scratch: Folder for temporary files; a text needs none.
    """

    def __init__(
        self, store: SqlImportStore, blobs: Blobs, documents: FileDocuments, scratch: Path
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._documents = documents
        self._scratch = scratch

    async def read(self, message: ImportMessage, plan: ImportPlan) -> SmallTable | None:
        """All rows of a document; None: its import takes the usual steps, which say why."""
        if not isinstance(message, AnyTableMessage) or not _is_simple(message, plan):
            return None
        try:
            return await self._read(message, plan)
        except (PortError, RuleViolation, InvalidDocument):
            # The step that loads rows meets the same, and the run parks or waits there.
            return None

    async def _read(self, message: AnyTableMessage, plan: ImportPlan) -> SmallTable | None:
        etag = None if plan.source is None else plan.source.etag
        spec = await self._store.types.spec(message, plan.facts)
        if spec.has_references or spec.is_elsewhere:
            return None
        blocks = self._blobs.read(message.blob_name, etag=etag)
        content = b"".join([block async for block in blocks])
        if not self._documents.is_container(content, message.document_name):
            return await self._table(message, spec, content, self._scratch)
        with scratch_folder(self._scratch) as folder:
            path = folder / "document"
            await asyncio.to_thread(path.write_bytes, content)
            return await self._table(message, spec, path, folder)

    async def _table(
        self, message: AnyTableMessage, spec: TableSpec, content: Path | bytes, folder: Path
    ) -> SmallTable | None:
        reading = TableReader(self._documents, content, message, spec, folder=folder)
        async with WorkerThread(inline=isinstance(content, bytes) and not spec.checks) as thread:
            try:
                await thread.run(reading.open)
                chunk = await thread.run(reading.next_chunk)
            finally:
                await thread.run(reading.close)
        is_whole = chunk is not None and reading.exhausted and not reading.findings.skipped
        if chunk is None or not is_whole or chunk.rejected or not chunk.rows:
            return None
        if SECTION in chunk.columns and any(code_columns(chunk, [SECTION])[0]):
            # Whether its lines are stored without their sections is looked up by the usual step.
            return None
        if spec.kept_fields(message.strategy, chunk.columns):
            # So are the stored values that rules need.
            return None
        note = note_of(reading, await self._store.types.superseded(spec))
        return SmallTable(message, spec, chunk, note)


def _is_simple(message: AnyTableMessage, plan: ImportPlan) -> bool:
    """Whether a document may go in by a single transaction, as far as its message shows.

    Only the first attempt of a local step tries: a later one does what is known to work.
    """
    step = activity.info()
    return (
        step.is_local
        and step.attempt == 1
        and plan.facts.handler is Handler.LOAD_ROWS
        and plan.source is not None
        and plan.source.size <= SMALL_BYTES
        and message.strategy in _ROW_BY_ROW
        and not message.all_or_nothing
        and message.leading_zeros is None
    )


SMALL_DOCUMENT_BYTES: Final = 1_000_000
"""Up to this size a document's steps are short enough to run inside the workflow's worker."""


class ImportLifecycle:
    """Opens and closes imports.

    Args:
        store: Tables.
        blobs: Where documents are.
        runs: What Temporal knows of the runs of other tasks.
        rejected: Keeps messages whose task another message has.
        small_document_bytes: Largest size of a document that takes the local path.
        prefixes: Where the blobs are that messages may name; none: anywhere but in own places.
        tables: Reads small tables, whose import is done by the first step; None: no import is.
    """

    def __init__(
        self,
        store: SqlImportStore,
        blobs: Blobs,
        runs: Runs,
        rejected: RejectedMessages,
        small_document_bytes: int = SMALL_DOCUMENT_BYTES,
        prefixes: Sequence[str] = (),
        tables: SmallTables | None = None,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._runs = runs
        self._rejected = rejected
        self._small = small_document_bytes
        self._prefixes = prefixes
        self._tables = tables

    @activity.defn(name="imports.prepare")
    @translate_failures
    @hands_over(Preparation(unfinished=True))
    async def prepare(self, order: ImportInput) -> Preparation:
        """Route a message, resolve its source and open its status row; or import it at once.

        A small table without problems is written, recorded as completed and deleted by this step
        alone. Any other document gets a plan, and the steps of its type.

        An import that is done already, under this task or under this guard (idempotency key,
        extraction id), is recognised before a missing blob is complained about: a completed
        import has deleted its blob. Another task whose run is over without a record loses the
        guard to this one. A message whose task was done by one with other content is recorded as
        rejected.

        Returns:
            The plan, with the outcome where the import is done; or, when there is nothing to do,
            why, and the state of the earlier import; or why the run waits for another task with
            this guard, which is running.

        Raises:
            ApplicationError: `MissingBlob` when the document is not there and nothing explains
                it, `Unavailable` when the blob store does not answer. The status row is open then,
                and shows the import as it waits. `Permanent` when another task has the guard and is
                parked: a person decides about both.
        """
        async with Heartbeater():
            return await self._prepared(order)

    async def _prepared(self, order: ImportInput) -> Preparation:
        message = order.message
        facts = await self._store.types.facts(message)
        if isinstance(message, AnyTableMessage):
            message = with_defaults(message, await self._store.types.spec(message, facts))
        source, missing, unavailable = None, None, None
        foreign = foreign_blob(message, self._prefixes)
        name = None if foreign else _source_name(message, facts)
        if name is not None:
            try:
                source = await self._blobs.stat(name)
            except BlobNotFound as error:
                missing = error
            except Unavailable as error:
                unavailable = error
        plan = self._plan(message, facts, source)
        guard = None if facts.guard is None else getattr(message, facts.guard)
        workflow_id = activity.info().workflow_id or message.workflow_id
        digest = None if order.origin is None else order.origin.digest
        begun = (message, plan, workflow_id, guard, digest, activity.info().workflow_run_id)
        if source is not None and (outcome := await self._at_once(*begun)) is not None:
            return Preparation(plan=plan, done=True, outcome=outcome)
        earlier = await self._store.begin(*begun)
        if earlier is not None and await self._is_released(message, earlier):
            earlier = await self._store.begin(*begun)
        if earlier is not None and earlier.by_this_run and earlier.state is ImportState.COMPLETED:
            return Preparation(plan=plan, done=True)
        if earlier is not None and earlier.task_id == message.task_id:
            return await self._repeated(order, earlier)
        if earlier is not None:
            return await self._left_to(earlier, order, plan)
        if foreign is not None:
            # A person may have corrected the message to this one.
            raise RuleViolation(foreign)
        if unavailable is not None:
            raise unavailable
        if missing is not None:
            raise BlobNotFound(
                f"{name} is not in the blob store; upload it there and retry"
            ) from missing
        return Preparation(plan=plan)

    async def _at_once(
        self,
        message: ImportMessage,
        plan: ImportPlan,
        workflow_id: str,
        guard: str | None,
        digest: str | None,
        run_id: str | None,
    ) -> HandlerOutcome | None:
        """Import a small table without problems; None: nothing is done, it takes the usual steps.

        A worker that dies between the record and the delete leaves an import that is done by its
        own run: `finish` deletes the document then.
        """
        table = None if self._tables is None else await self._tables.read(message, plan)
        if table is None:
            return None
        whole = WholeImport(
            *(table.message, plan, workflow_id, guard, digest, run_id),
            spec=table.spec,
            chunk=table.chunk,
            note=table.note,
        )

        async def complete() -> HandlerOutcome | None:
            outcome = await self._store.complete(whole)
            if outcome is not None:
                await self._delete_source(plan)
            return outcome

        return await carried_through(complete())

    @activity.defn(name="imports.finish")
    @announces(lambda closing: closing.state is ImportState.PARKED)
    @translate_failures
    async def finish(self, closing: Closing) -> HandlerOutcome:
        """Record how an import ended or why it waits; delete the source of a completed one.

        A source that was replaced in the meantime is a later document and stays.

        Returns:
            The outcome as recorded.
        """
        workflow_id = activity.info().workflow_id or closing.message.workflow_id
        outcome = await self._store.close(closing, workflow_id)
        if closing.state is ImportState.COMPLETED and closing.plan is not None:
            await self._delete_source(closing.plan)
        return outcome

    async def _delete_source(self, plan: ImportPlan) -> None:
        if plan.delete_source and plan.source is not None:
            await self._blobs.delete(plan.source.name, etag=plan.source.etag)

    def _plan(self, message: ImportMessage, facts: TypeInfo, source: BlobRef | None) -> ImportPlan:
        path: Literal["local", "remote"] = (
            "local" if source is None or source.size <= self._small else "remote"
        )
        delete = _uses_up_its_blob(message, facts)
        return ImportPlan(facts=facts, path=path, source=source, delete_source=delete)

    async def _is_released(self, message: ImportMessage, earlier: EarlierImport) -> bool:
        """Whether another task has lost the work to this one, because its run is over."""
        is_open = earlier.state in (ImportState.RUNNING, ImportState.PARKED)
        if earlier.task_id == message.task_id or not is_open:
            return False
        holder = workflow_id_of(message.project_id, earlier.task_id)
        end = await self._runs.end(holder)
        if end is None:
            return False
        return await self._store.terminate(holder, reason_of(holder, end))

    async def _repeated(self, order: ImportInput, earlier: EarlierImport) -> Preparation:
        """Nothing to do: the task is over. Temporal may have forgotten its run."""
        message, origin, state = order.message, order.origin, earlier.state
        done = f"this import is {state.value} already"
        if origin is None or earlier.digest is None:
            unknown = "whether by the same message is not known, as its digest was not kept"
            return Preparation(skip=f"{done}; {unknown}", state=state)
        if origin.digest == earlier.digest:
            return Preparation(skip=done, state=state)
        refused = (
            f"task {message.project_id}/{message.task_id} is {state.value} already, by a message "
            "with other content: this message was not used; send it again under a task id that "
            "was not used before"
        )
        await self._rejected.record(
            origin.queue,
            # The record knows a message that comes twice by its id.
            origin.message_id or message.workflow_id,
            KEY_REUSED,
            refused,
            body_of(message),
        )
        return Preparation(refused=refused, state=state, digest=earlier.digest)

    async def _left_to(
        self, holder: EarlierImport, order: ImportInput, plan: ImportPlan
    ) -> Preparation:
        """Nothing to do, or not yet: another task has the work."""
        message, guard = order.message, plan.facts.guard
        named = (guard or "guard").replace("_", " ")
        value = getattr(message, guard) if guard else None
        held = f"task {holder.task_id} with the same {named} {value!r} is {holder.state.value}"
        if holder.state is ImportState.PARKED:
            name = f"{message.project_id}/{holder.task_id}"
            raise RuleViolation(
                f"{held}: answer it first (`docflow show {name}`), then retry this one; what "
                "that one imports makes this one unnecessary, and its skip frees the work for it"
            )
        if holder.state is ImportState.RUNNING:
            reason = f"{held}: this one waits for its end"
            await self._record(order, plan, ImportState.RUNNING, reason)
            return Preparation(waits=reason, state=holder.state)
        reason = f"{held} already"
        await self._record(order, plan, ImportState.SKIPPED, reason)
        return Preparation(skip=reason, state=holder.state)

    async def _record(
        self, order: ImportInput, plan: ImportPlan, state: ImportState, reason: str
    ) -> None:
        digest = None if order.origin is None else order.origin.digest
        closing = Closing(
            message=order.message, plan=plan, state=state, reason=reason, digest=digest
        )
        await self._store.close(closing, activity.info().workflow_id or order.message.workflow_id)


def _uses_up_its_blob(message: ImportMessage, facts: TypeInfo) -> bool:
    """Whether the source goes when the import is done.

    Never earlier: when a worker dies, the local steps of its run are done again, from the look for
    the source on.
    """
    if isinstance(message, ScheduleUploadMessage):
        return not message.direct_upload
    # A schedule whose projects were listed is extracted next.
    return facts.needs_blob and not facts.own_download


def _source_name(message: ImportMessage, facts: TypeInfo) -> str | None:
    if not facts.needs_blob:
        return None
    if isinstance(message, ScheduleUploadMessage):
        return message.source_blob_name
    return message.blob_name if isinstance(message, FileMessage) else None
