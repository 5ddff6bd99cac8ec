"""First and last step of every import: the plan, and the record."""

from typing import Final, Literal

from temporalio import activity

from activities.failures import translate_failures
from activities.handover import hands_over
from activities.heartbeat import Heartbeater
from activities.run_sweep import reason_of
from adapters.ports import BlobNotFound, Blobs, ImportStore, Runs
from contracts.blobs import BlobRef
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
from domain.errors import RuleViolation
from domain.imports.registry import REGISTRY

SMALL_DOCUMENT_BYTES: Final = 1_000_000
"""Up to this size a document's steps are short enough to run inside the workflow's worker."""


class ImportLifecycle:
    """Opens and closes imports.

    Args:
        store: Tables.
        blobs: Where documents are.
        runs: What Temporal knows of the runs of other tasks.
        small_document_bytes: Largest size of a document that takes the local path.
    """

    def __init__(
        self,
        store: ImportStore,
        blobs: Blobs,
        runs: Runs,
        small_document_bytes: int = SMALL_DOCUMENT_BYTES,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._runs = runs
        self._small = small_document_bytes

    @activity.defn(name="imports.prepare")
    @translate_failures
    @hands_over(Preparation(unfinished=True))
    async def prepare(self, order: ImportOrder) -> Preparation:
        """Route a message, resolve its source and open its status row.

        An import that is done already, under this task or under this guard (idempotency key,
        extraction id), is recognised before a missing blob is complained about: a completed
        import has deleted its blob. Another task whose run is over without a record loses the
        guard to this one.

        Returns:
            The plan; or, when there is nothing to do, why, and the state of the earlier import.

        Raises:
            ApplicationError: `MissingBlob` when the document is not there and nothing explains
                it. The status row is open then, and shows the import as it waits. `Permanent`
                when another task has the guard and is parked: a person decides about both.
        """
        async with Heartbeater():
            return await self._prepare(order)

    async def _prepare(self, order: ImportOrder) -> Preparation:
        message = order.message
        facts = REGISTRY[message.document_type]
        source, missing = None, None
        if (name := _source_name(message, facts)) is not None:
            try:
                source = await self._blobs.stat(name)
            except BlobNotFound as error:
                missing = error
        plan = self._plan(facts, source)
        guard = None if facts.guard is None else getattr(message, facts.guard)
        workflow_id = activity.info().workflow_id or message.workflow_id
        earlier = await self._store.begin(message, plan, workflow_id, guard)
        if earlier is not None and await self._is_released(message, *earlier):
            earlier = await self._store.begin(message, plan, workflow_id, guard)
        if earlier is not None:
            return await self._already_done(message, plan, facts, *earlier)
        if missing is not None:
            raise BlobNotFound(
                f"{name} is not in the blob store; upload it there and retry"
            ) from missing
        return Preparation(plan=plan)

    @activity.defn(name="imports.finish")
    @translate_failures
    async def finish(self, closing: Closing) -> HandlerOutcome:
        """Record how an import ended or why it waits; delete the source of a completed one.

        A source that was replaced in the meantime is a later document and stays.

        Returns:
            The outcome as recorded.
        """
        workflow_id = activity.info().workflow_id or closing.message.workflow_id
        outcome = await self._store.close(closing, workflow_id)
        plan = closing.plan
        if closing.state is ImportState.COMPLETED and plan and plan.delete_source and plan.source:
            await self._blobs.delete(plan.source.name, etag=plan.source.etag)
        return outcome

    def _plan(self, facts: TypeFacts, source: BlobRef | None) -> ImportPlan:
        path: Literal["local", "remote"] = (
            "local" if source is None or source.size <= self._small else "remote"
        )
        # A handler with a download of its own decides about its blob itself: a schedule whose
        # projects were listed is extracted next.
        delete = facts.needs_blob and not facts.own_download
        return ImportPlan(facts=facts, path=path, source=source, delete_source=delete)

    async def _is_released(self, message: ImportMessage, state: ImportState, task_id: str) -> bool:
        """Whether another task has lost the work to this one, because its run is over."""
        if task_id == message.task_id or state not in (ImportState.RUNNING, ImportState.PARKED):
            return False
        holder = workflow_id_of(message.project_id, task_id)
        end = await self._runs.end(holder)
        if end is None:
            return False
        return await self._store.terminate(holder, reason_of(holder, end))

    async def _already_done(
        self,
        message: ImportMessage,
        plan: ImportPlan,
        facts: TypeFacts,
        state: ImportState,
        task_id: str,
    ) -> Preparation:
        if task_id == message.task_id:
            return Preparation(skip=f"this import is {state.value} already", state=state)
        named = (facts.guard or "guard").replace("_", " ")
        value = getattr(message, facts.guard) if facts.guard else None
        holder = f"task {task_id} with the same {named} {value!r} is {state.value}"
        if state is ImportState.PARKED:
            name = f"{message.project_id}/{task_id}"
            raise RuleViolation(
                f"{holder}: answer it first (`docflow show {name}`), then retry this one; what "
                "that one imports makes this one unnecessary, and its skip frees the work for it"
            )
        reason = f"{holder} already"
        closing = Closing(message=message, plan=plan, state=ImportState.SKIPPED, reason=reason)
        workflow_id = activity.info().workflow_id or message.workflow_id
        await self._store.close(closing, workflow_id)
        return Preparation(skip=reason, state=state)


def _source_name(message: ImportMessage, facts: TypeFacts) -> str | None:
    if not facts.needs_blob:
        return None
    if isinstance(message, ScheduleUploadMessage):
        return message.source_blob_name
    return message.blob_name if isinstance(message, FileMessage) else None
