"""What actions at endpoints have in common: partners, staged files, breakers."""

import asyncio
import hashlib
import os
import shutil
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from activities.shared.failures import BoundedHeartbeater, Heartbeater
from activities.shared.scratch import disk_full
from adapters.ports.errors import Denied, PortError
from adapters.ports.places import (
    Busy,
    LoginRefused,
    Naming,
    PartnerAway,
    PartnerFull,
    Place,
    PlaceError,
    Places,
    UnknownHostKey,
)
from adapters.ports.transfers import Notes, PartnerStore
from adapters.staging import BlobStaging
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import InvalidDocument, RuleViolation
from workflows.transfers.events import TransferId
from workflows.transfers.partners import Partner
from workflows.transfers.receipts import ReceiptFile, ReceiptStep, canonical, seal_step
from workflows.transfers.runs import (
    INLINE_STEP,
    REMARKS,
    ActionInput,
    ActionResult,
    Manifest,
    NamingNote,
    StagedFile,
    TransferProgress,
    first_of,
)
from workflows.transfers.settings import FILES

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

    def __init__(self, staging: BlobStaging, order: ActionInput) -> None:
        self.staging = staging
        self._order = order
        self._run, self._name = order.job.transfer_id, f"{order.index:02}-{order.round}"
        self._staged: list[BlobRef] = []
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(with_attempt_limit(self._order))
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
        step = seal_step(
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


def with_attempt_limit(order: ActionInput) -> BoundedHeartbeater:
    """Heartbeats of an action, which is refused when it has lost too many workers in a row."""
    return BoundedHeartbeater(f"carried out {order.action.action}")


def remarks_of_empty(files: Sequence[StagedFile]) -> Sequence[str]:
    """A remark where files that an action has made are empty; one that was read is refused."""
    empty = sum(file.blob.size == 0 for file in files)
    return [f"{empty:,} of {len(files):,} files are empty"] if empty else []


async def staged_files(staging: BlobStaging, manifest: Manifest) -> list[StagedFile]:
    """The files that a manifest lists."""
    if manifest.blob is None:
        return []
    return [StagedFile.model_validate_json(line) for line in await lines_of(staging, manifest.blob)]


async def lines_of(staging: BlobStaging, blob: BlobRef) -> list[bytes]:
    """The lines of a short staged file."""
    return (await content_of(staging, blob)).splitlines()


async def content_of(staging: BlobStaging, blob: BlobRef) -> bytes:
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


async def staged_path(staging: BlobStaging, file: StagedFile, folder: Path) -> Path:
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


SHORTEST_SECONDS: Final = 5.0
LONGEST_SECONDS: Final = 60.0
REFUSED_SECONDS: Final = 300.0
"""For a server that refuses the login, from the first time on."""


@dataclass(frozen=True, slots=True)
class _Away:
    problem: str
    failures: int
    until: float
    """Until then only the probe connects."""
    refused: bool = False
    """It refuses the login: the probe does not connect either."""


class Breaker:
    """Opens endpoints, as `Places`; after a failure all callers fail at once for some seconds.

    The first failure counts for 5 seconds, each further one for twice as long, up to a minute; a
    login that was refused for five minutes.

    Args:
        places: Opens endpoints.
        clock: Seconds.
        probes: Opens them for the probe; None: as for all others.
    """

    def __init__(
        self,
        places: Places,
        clock: Callable[[], float] = time.monotonic,
        probes: Places | None = None,
    ) -> None:
        self._places, self._clock = places, clock
        self._probes = probes or places
        self._away: dict[str, _Away] = {}

    @property
    def probing(self) -> Places:
        """Connects whatever is known, for the probe of an outage; a success closes the breaker."""
        return _Probing(self, self._probes)

    def open(self, partner: Partner) -> AbstractAsyncContextManager[Place]:
        """Connect, unless the partner was away a moment ago.

        Raises:
            PartnerAway: It cannot be reached, or could not a moment ago.
        """
        return self._opened(partner)

    @asynccontextmanager
    async def _opened(self, partner: Partner) -> AsyncGenerator[Place]:
        known = self._away.get(partner.name)
        if known is not None and self._clock() < known.until:
            raise PartnerAway(partner.name, known.problem)
        async with self.connected(partner, self._places) as place:
            yield place

    @asynccontextmanager
    async def connected(self, partner: Partner, places: Places) -> AsyncGenerator[Place]:
        """Connect, and remember how that and what followed went."""
        try:
            async with places.open(partner) as place:
                yield place
        except PartnerFull:
            # It has answered; what is read and removed there makes room.
            self._away.pop(partner.name, None)
            raise
        except PartnerAway as error:
            self._note(partner.name, error)
            raise
        except PlaceError:
            # The endpoint has answered.
            self._away.pop(partner.name, None)
            raise
        self._away.pop(partner.name, None)

    def problem(self, partner: Partner) -> str | None:
        """Why a partner was away when it was used last; None: it was not."""
        known = self._away.get(partner.name)
        return None if known is None else known.problem

    def require_login(self, partner: Partner) -> None:
        """See that a partner did not refuse us a moment ago.

        Raises:
            PartnerAway: It did.
        """
        known = self._away.get(partner.name)
        if known is not None and known.refused and self._clock() < known.until:
            raise PartnerAway(partner.name, known.problem)

    def _note(self, name: str, error: PartnerAway) -> None:
        known = self._away.get(name)
        failures = 1 if known is None else known.failures + 1
        refused = isinstance(error, LoginRefused)
        pause = min(SHORTEST_SECONDS * 2.0 ** min(failures - 1, 10), LONGEST_SECONDS)
        until = self._clock() + (REFUSED_SECONDS if refused else pause)
        self._away[name] = _Away(str(error), failures, until, refused)


class _Probing:
    def __init__(self, breaker: Breaker, places: Places) -> None:
        self._breaker, self._places = breaker, places

    def open(self, partner: Partner) -> AbstractAsyncContextManager[Place]:
        return self._opened(partner)

    @asynccontextmanager
    async def _opened(self, partner: Partner) -> AsyncGenerator[Place]:
        self._breaker.require_login(partner)
        try:
            async with self._breaker.connected(partner, self._places) as place:
                yield place
        except Busy:
            # Those that use it now may be waiting in vain; one that succeeds closes the breaker.
            problem = self._breaker.problem(partner)
            if problem is None:
                raise
            raise PartnerAway(partner.name, problem) from None


def now_utc() -> datetime:
    """The time."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class EndpointPorts:
    """What actions at endpoints are given."""

    places: Places
    partners: PartnerStore
    staging: BlobStaging
    notes: Notes
    probing: Places
    """Connects whatever is known of a partner, for the probe of an outage."""
    now: Callable[[], datetime] = now_utc
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Between two looks at a file that may still be written."""


async def partner_of(partners: PartnerStore, name: str) -> Partner:
    """The record of a partner, as it is now.

    Raises:
        RuleViolation: There is none.
    """
    partner = await partners.get(name)
    if partner is None:
        raise RuleViolation(f"there is no partner {name}; `docflow partner add {name}` makes one")
    return partner


@asynccontextmanager
async def opened(
    places: Places, partners: PartnerStore, name: str
) -> AsyncGenerator[tuple[Partner, Place]]:
    """A partner's endpoint, for the length of the block.

    A server that shows an unknown host key stops the partner: every run that needs it waits, with
    one outage and one notice for all of them, until a person accepts the key.

    Raises:
        RuleViolation: There is no such partner.
        PartnerAway: It cannot be reached, is stopped or disabled, or its record cannot be used.
    """
    partner = await partner_of(partners, name)
    async with _place(places, partners, partner) as place:
        yield partner, place
        if partner.profile is None and place.profile is not None:
            await _keep_profile(partners, partner, place)


@asynccontextmanager
async def _place(places: Places, partners: PartnerStore, partner: Partner) -> AsyncGenerator[Place]:
    async with AsyncExitStack() as stack:
        try:
            place = await stack.enter_async_context(places.open(partner))
        except UnknownHostKey as error:
            raise await stopped_by(partners, partner, error) from None
        except Denied as error:
            # Of its record, a secret or its address: no file has anything to do with it.
            raise PartnerAway(partner.name, str(error)) from None
        yield place


async def stopped_by(
    partners: PartnerStore, partner: Partner, error: UnknownHostKey
) -> PartnerAway:
    """Stop a partner whose server shows an unknown key; the failure of the step that saw it."""
    name = partner.name
    sentence = f"{error}; if that is right: docflow partner key add {name}"[:500]
    # Refused where another run was faster, or a person has changed the record: the next attempt
    # sees it.
    with suppress(RuleViolation):
        await partners.put(
            partner.model_copy(update={"stopped": sentence}), expected=partner.revision
        )
    return PartnerAway(name, f"{name} is stopped: {sentence}")


async def _keep_profile(partners: PartnerStore, partner: Partner, place: Place) -> None:
    # Refused where it was changed meanwhile: it is probed again.
    with suppress(RuleViolation):
        await partners.put(
            partner.model_copy(update={"profile": place.profile}), expected=partner.revision
        )


async def partner_probe(places: Places, partners: PartnerStore, name: str) -> int | None:
    """See whether a partner can be used: what those ask who wait for it.

    Returns:
        Bytes that can be written; None: it does not report it.

    Raises:
        PartnerAway: It cannot.
    """
    try:
        async with opened(places, partners, name) as (_, place):
            await place.ping()
            return await place.room()
    except RuleViolation:
        # Removed by a person: nothing is to be waited for, and the step of the run says so.
        return None


class NotedNamings:
    """Keeps what attempts at one file came to with the notes of its run.

    Args:
        notes: Where.
        run: The transfer.
        name: Of the note, one for each file.
    """

    def __init__(self, notes: Notes, run: str, name: str) -> None:
        self._notes, self._run, self._name = notes, run, name

    async def last(self) -> Naming | None:
        """What was noted last."""
        text = await self._notes.read(self._run, self._name)
        note = None if text is None else NamingNote.model_validate_json(text)
        if note is None or not note.path:
            return None
        return Naming(note.wanted, note.path, note.sha256, note.done)

    async def note(self, naming: Naming | None) -> None:
        """Note it."""
        note = NamingNote(**asdict(naming or Naming("", "", "")))
        await self._notes.write(self._run, self._name, note.model_dump_json().encode())


def progress_of(beats: Heartbeater, done: int) -> Callable[[int], None]:
    """Tells in heartbeats how far a file is."""

    def tell(size: int) -> None:
        beats.beat(TransferProgress(files=done, bytes=size))

    return tell


def shown(partner: Partner, path: str) -> str:
    """Where a file is, for the receipt: nothing of it is secret."""
    return f"{partner.kind}:{partner.name}/{path}"


def digest_of(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
