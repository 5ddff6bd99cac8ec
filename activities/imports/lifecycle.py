"""First and last step of every import: the plan, and the record."""

from collections.abc import Sequence
from typing import Final, Literal

from temporalio import activity

from activities.failures import announces, translate_failures
from activities.handover import carried_through, hands_over
from activities.heartbeat import Heartbeater
from activities.imports.small_tables import SmallTables
from activities.run_sweep import reason_of
from adapters.ports import (
    BlobNotFound,
    Blobs,
    EarlierImport,
    ImportStore,
    RejectedMessages,
    Runs,
    Unavailable,
    WholeImport,
)
from contracts.blobs import BlobRef
from contracts.errors import KEY_REUSED
from contracts.imports import (
    Closing,
    FileMessage,
    HandlerOutcome,
    ImportMessage,
    ImportOrder,
    ImportPlan,
    ImportState,
    Preparation,
    ScheduleUploadMessage,
    TypeFacts,
)
from contracts.imports import workflow_id as workflow_id_of
from contracts.origins import body_of
from domain.errors import RuleViolation
from domain.imports.places import foreign_blob
from domain.imports.registry import REGISTRY

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
        store: ImportStore,
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
    async def prepare(self, order: ImportOrder) -> Preparation:
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

    async def _prepared(self, order: ImportOrder) -> Preparation:
        message = order.message
        facts = REGISTRY[message.document_type]
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

    def _plan(self, message: ImportMessage, facts: TypeFacts, source: BlobRef | None) -> ImportPlan:
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

    async def _repeated(self, order: ImportOrder, earlier: EarlierImport) -> Preparation:
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
        self, holder: EarlierImport, order: ImportOrder, plan: ImportPlan
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
        self, order: ImportOrder, plan: ImportPlan, state: ImportState, reason: str
    ) -> None:
        digest = None if order.origin is None else order.origin.digest
        closing = Closing(
            message=order.message, plan=plan, state=state, reason=reason, digest=digest
        )
        await self._store.close(closing, activity.info().workflow_id or order.message.workflow_id)


def _uses_up_its_blob(message: ImportMessage, facts: TypeFacts) -> bool:
    """Whether the source goes when the import is done.

    Never earlier: when a worker dies, the local steps of its run are done again, from the look for
    the source on.
    """
    if isinstance(message, ScheduleUploadMessage):
        return not message.direct_upload
    # A schedule whose projects were listed is extracted next.
    return facts.needs_blob and not facts.own_download


def _source_name(message: ImportMessage, facts: TypeFacts) -> str | None:
    if not facts.needs_blob:
        return None
    if isinstance(message, ScheduleUploadMessage):
        return message.source_blob_name
    return message.blob_name if isinstance(message, FileMessage) else None
