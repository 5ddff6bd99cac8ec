"""The staged files of one action, and its step of the receipt."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from activities.heartbeat import BoundedHeartbeater
from activities.scratch import disk_full
from adapters.ports import PortError
from adapters.ports.transfers import Staging
from contracts.blobs import BlobRef
from contracts.transfers import (
    FILES,
    INLINE_STEP,
    REMARKS,
    ActionOrder,
    ActionResult,
    Manifest,
    ReceiptFile,
    ReceiptStep,
    StagedFile,
    TransferId,
)
from domain.errors import InvalidDocument, RuleViolation
from domain.transfers.receipts import canonical, sealed
from domain.transfers.remarks import first_of

_BLOCK: Final = 1 << 18
_SENTENCE: Final = 500


class StepFiles:
    """What one action reads and stages.

    As a context manager it sends heartbeats, refuses work that has lost too many workers, and
    removes what an attempt has staged that fails.

    Args:
        staging: Where the files are.
        order: The action.
    """

    def __init__(self, staging: Staging, order: ActionOrder) -> None:
        self.staging = staging
        self._order = order
        self._run, self._name = order.job.transfer_id, f"{order.index:02}-{order.round}"
        self._staged: list[BlobRef] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(bounded(self._order))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if error is not None:
                await self._discard()
        finally:
            await self._stack.__aexit__(kind, error, traceback)

    async def _discard(self) -> None:
        try:
            for blob in self._staged:
                await self.staging.discard(blob)
        except PortError:
            # What is left is removed with the run, and the failure of the action counts.
            return

    async def files(self, manifest: Manifest) -> list[StagedFile]:
        """The files that a manifest lists."""
        return await staged_files(self.staging, manifest)

    async def given(self) -> list[StagedFile]:
        """The files that the action is given; there are none where a ReadFile found none.

        Raises:
            RuleViolation: No action before it has read any.
        """
        found = await self.files(self._order.files)
        if self._order.files.blob is None:
            raise RuleViolation(
                f"{self._order.action.action} has no files: a ReadFile has to stand before it"
            )
        return found

    async def stage(self, number: int, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Stream the bytes of a file in."""
        blob = await self.staging.write(self._run, f"{self._name}-{number:05}", chunks)
        self._staged.append(blob)
        return blob

    async def manifest(self, files: Sequence[StagedFile]) -> Manifest:
        """Write the list of files.

        Raises:
            InvalidDocument: Two have one name, or there are too many.
        """
        require_distinct(files)
        lines = (file.model_dump_json().encode() + b"\n" for file in files)
        blob = await self.staging.write(self._run, f"{self._name}-files", _joined(lines))
        self._staged.append(blob)
        return Manifest(files=len(files), bytes=sum(file.blob.size for file in files), blob=blob)

    async def result(
        self,
        files: Manifest,
        lines: Sequence[ReceiptFile],
        at: datetime | None = None,
        *,
        remarks: Sequence[str] = (),
        guarantee: str | None = None,
        infected: str | None = None,
        fired: Sequence[TransferId] = (),
    ) -> ActionResult:
        """The result of the action, with its step of the receipt.

        Args:
            files: For the next action.
            lines: What was done with each file.
            at: When; None: now.
            remarks: What people should know; of many the first few, and the number of the others.
            guarantee: Of what was written.
            infected: Why nothing is written on.
            fired: Transfers of the events that were sent.
        """
        shown = first_of(remarks, f"more remarks of action {self._order.index + 1}")
        step = sealed(
            ReceiptStep(
                transfer_id=self._run,
                index=self._order.index,
                action=self._order.action.action,
                configured_by=self._order.configured_by,
                at=at or datetime.now(UTC),
                files=tuple(lines),
                remarks=shown,
                previous=self._order.previous,
                sha256="",
            )
        )
        text = canonical(step).decode()
        is_inline = self._order.inline_step and len(text) <= INLINE_STEP
        return ActionResult(
            files=files,
            step=None if is_inline else await self._stored_step(text),
            inline_step=text if is_inline else "",
            step_sha256=step.sha256,
            remarks=shown,
            guarantee=guarantee,
            infected=None if infected is None else infected[:_SENTENCE],
            fired=tuple(fired[:REMARKS]),
        )

    async def _stored_step(self, text: str) -> BlobRef:
        return await self.staging.write(self._run, f"{self._name}-step", once(text.encode()))


def bounded(order: ActionOrder) -> BoundedHeartbeater:
    """Heartbeats of an action, which is refused when it has lost too many workers in a row."""
    return BoundedHeartbeater(f"carried out {order.action.action}")


def remarks_of_empty(files: Sequence[StagedFile]) -> Sequence[str]:
    """A remark where files that an action has made are empty; one that was read is refused."""
    empty = sum(file.blob.size == 0 for file in files)
    return [f"{empty:,} of {len(files):,} files are empty"] if empty else []


async def staged_files(staging: Staging, manifest: Manifest) -> list[StagedFile]:
    """The files that a manifest lists."""
    if manifest.blob is None:
        return []
    return [StagedFile.model_validate_json(line) for line in await lines_of(staging, manifest.blob)]


async def lines_of(staging: Staging, blob: BlobRef) -> list[bytes]:
    """The lines of a short staged file."""
    return (await content_of(staging, blob)).splitlines()


async def content_of(staging: Staging, blob: BlobRef) -> bytes:
    """All bytes of a short staged file."""
    return b"".join([piece async for piece in staging.read(blob)])


def require_distinct(files: Sequence[StagedFile]) -> None:
    """See that no file would replace another.

    Raises:
        InvalidDocument: Two have one name, or there are too many.
    """
    if len(files) > FILES:
        raise InvalidDocument(f"there are {len(files):,} files, and {FILES:,} are the most")
    seen: set[str] = set()
    for file in files:
        if file.name in seen:
            raise InvalidDocument(f"two files would be called {file.name!r}")
        seen.add(file.name)


def line_of(
    before: StagedFile | None, after: StagedFile | None, verdict: str | None = None
) -> ReceiptFile:
    """What a receipt says of a file that an action has changed, made or used up."""
    known = after or before
    assert known is not None, "it is one file or the other"
    return ReceiptFile(
        name=known.name,
        size=known.blob.size,
        sha256_before=None if before is None else before.blob.sha256,
        sha256_after=None if after is None else after.blob.sha256,
        verdict=None if verdict is None else verdict[:_SENTENCE],
    )


async def _joined(lines: Iterable[bytes]) -> AsyncIterator[bytes]:
    held = bytearray()
    for line in lines:
        held += line
        if len(held) >= _BLOCK:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


async def staged_path(staging: Staging, file: StagedFile, folder: Path) -> Path:
    """Write a staged file to the disk.

    Args:
        staging: Where it is.
        file: The file; its own name is not used.
        folder: A scratch folder of one's own.

    Raises:
        Unavailable: There is no room for it.
        RuleViolation: There never will be.
    """
    disk = shutil.disk_usage(folder)
    if disk.total < file.blob.size:
        raise RuleViolation(
            f"{file.name!r} has {file.blob.size:,} bytes, and the whole scratch disk has "
            f"{disk.total:,}: have it enlarged, or the file sent in parts"
        )
    if disk.free < file.blob.size:
        raise disk_full(file.blob.size)
    path = folder / f"staged-{os.urandom(6).hex()}"
    with path.open("xb") as sink:
        async for piece in staging.read(file.blob):
            await asyncio.to_thread(sink.write, piece)
    return path


async def once(content: bytes) -> AsyncIterator[bytes]:
    """Bytes that are all there, as they would arrive."""
    yield content
