"""Moves an uploaded schedule file to its place, verified, and registers it."""

from pathlib import Path

from temporalio import activity

from activities.failures import translate_failures
from activities.handover import hands_over
from activities.heartbeat import Heartbeater
from activities.scratch import refuse_replaced, scratch_folder
from adapters.ports import BlobNotFound, Blobs, ImportStore, Unavailable
from contracts.blobs import BlobRef
from contracts.imports import Handler, HandlerInput, HandlerOutcome, ScheduleUploadMessage
from domain.errors import RuleViolation
from domain.imports.chunks import TaskKey


class UploadImports:
    """Uploads of schedule files.

    Args:
        store: Tables.
        blobs: Where the files are, before and after.
        scratch: Folder for temporary files.
    """

    def __init__(self, store: ImportStore, blobs: Blobs, scratch: Path) -> None:
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
