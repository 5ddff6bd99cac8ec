"""Files from a partner into the staging area, and what becomes of the sources."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from temporalio import activity

from activities.shared.failures import BoundedHeartbeater, Heartbeater, translate_failures
from activities.transfers.endpoints import (
    EndpointPorts,
    StepFiles,
    digest_of,
    opened,
    progress_of,
    shown,
    staged_files,
    with_attempt_limit,
)
from adapters.ports.errors import Denied, NotYet, PortError
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    NameRefused,
    NameTaken,
    PartnerAway,
    Place,
    PlaceError,
    Progress,
)
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.paths import (
    has_wildcards,
    literal,
    nearly_named,
    numbered,
    path_problem,
    printable,
    split,
    split_matches,
    widen_pattern,
)
from workflows.transfers.receipts import ReceiptFile, read_digest
from workflows.transfers.runs import (
    ActionInput,
    ActionResult,
    ReadCursor,
    SettleInput,
    SettleResult,
    StagedFile,
    first_of,
)
from workflows.transfers.settings import AfterSource, ReadFile, fill_name, resolved_text

STABLE_SECONDS: Final = 2.0
"""Between the two looks at a file. Times of SFTP are whole seconds."""
_YOUNG: Final = timedelta(days=1)
_GROWING: Final = frozenset({PlaceKind.FOLDER, PlaceKind.SFTP})
"""Where a file is seen while it is written."""
_WORTH_KEEPING: Final = 8 << 20
"""Bytes of a file whose connection broke that are kept for the next attempt."""
_NOTED_FILES: Final = 200
_SPARE: Final = 1_000
"""Files of a folder that are named in remarks at most, beside those that are read."""


@dataclass
class _Reading:
    """What one attempt has read so far."""

    cursor: ReadCursor
    files: list[StagedFile]


class FileReading:
    """Reads files.

    Args:
        ports: Partners, staged bytes and notes.
    """

    def __init__(self, ports: EndpointPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.read_file")
    @translate_failures
    async def read_file(self, order: ActionInput) -> ActionResult:
        """Read the files that an action names; another attempt continues where one broke off.

        Raises:
            FileMissing: There are fewer than expected.
            RuleViolation: There are more, one is empty, or a transfer that is carried out anew
                has read and written something else.
            FileChanged: One grew or changed while it was read.
            NotYet: One is still being written, as far as its size and time tell.
            WorkersLost: It has lost too many workers in a row.
        """
        async with with_attempt_limit(order) as beats:
            return await self._read_all(order, beats)

    async def _read_all(self, order: ActionInput, beats: Heartbeater) -> ActionResult:
        action = _action(order)
        step = StepFiles(self._ports.staging, order)
        end = opened(self._ports.places, self._ports.partners, action.partner)
        async with end as (partner, place):
            entries, remarks = await _found(place, action, resolved_text(order.names["path"]))
            reading = await self._begun(order, step, entries)
            self._check_stable(action, entries, reading.cursor.seen)
            if action.stable_seconds is None and partner.kind in _GROWING:
                await self._look_twice(place, entries)
            try:
                for number in range(len(reading.files), len(entries)):
                    progress = progress_of(beats, number)
                    await self._read(order, step, place, entries[number], reading, progress)
            except PortError:
                await self._note(order, step, reading)
                raise
        remarks = [*remarks, *_remarks_of_empty(action, reading.files)]
        lines = [_line(partner, file) for file in reading.files]
        _check_same(order, lines)
        return await step.result(
            await step.manifest(reading.files),
            lines,
            self._ports.now(),
            remarks=remarks,
        )

    async def _begun(
        self, order: ActionInput, step: StepFiles, entries: Sequence[Entry]
    ) -> _Reading:
        """Where an earlier attempt got to, if it found the same files."""
        listing = digest_of("\n".join(map(repr, entries)))
        text = await self._ports.notes.read(order.job.transfer_id, _note_of(order))
        if text is not None:
            cursor = ReadCursor.model_validate_json(text)
            if cursor.listing == listing:
                return _Reading(cursor, await step.files(cursor.files))
        reading = _Reading(ReadCursor(listing=listing, seen=self._ports.now()), [])
        if _action(order).stable_seconds:
            await self._note(order, step, reading)
        return reading

    async def _look_twice(self, place: Place, entries: Sequence[Entry]) -> None:
        """See that files which may still be written have the same size and time a moment later.

        Raises:
            NotYet: One has not.
        """
        young = [entry for entry in entries if _is_young(entry, self._ports.now())]
        if not young:
            return
        await self._ports.pause(STABLE_SECONDS)
        for entry in young:
            now = await place.stat(entry.path)
            if (entry.size, entry.changed, entry.tag) != (now.size, now.changed, now.tag):
                raise NotYet(
                    f"{printable(entry.path)} is still being written: it had {entry.size:,} bytes, "
                    f"and {now.size:,} after {STABLE_SECONDS:.0f} s; `StableSeconds` says how long "
                    "a file has to be unchanged",
                    STABLE_SECONDS,
                )

    def _check_stable(self, action: ReadFile, entries: Sequence[Entry], seen: datetime) -> None:
        now, wanted = self._ports.now(), action.stable_seconds or 0
        for entry in entries:
            # A partner's clock may be wrong: what we have seen ourselves counts as well.
            known = [(now - seen).total_seconds()]
            known += [(now - entry.changed).total_seconds()] if entry.changed else []
            if max(known) < wanted:
                missing = wanted - max(known)
                raise NotYet(
                    f"{printable(entry.path)} has not been unchanged for {wanted} s yet",
                    max(missing, 1.0),
                )

    async def _read(
        self,
        order: ActionInput,
        step: StepFiles,
        place: Place,
        entry: Entry,
        reading: _Reading,
        progress: Progress,
    ) -> None:
        """Stage one file, from where an earlier attempt got to."""
        begun, reading.cursor = reading.cursor.partial, _without_partial(reading.cursor)
        arriving = _Arriving(progress)
        blob = await step.stage(len(reading.files), arriving.of(self._chunks(place, entry, begun)))
        if begun is not None:
            await self._ports.staging.discard(begun)
        if arriving.broken is not None:
            reading.cursor = reading.cursor.model_copy(update={"partial": blob})
            raise arriving.broken
        reading.files.append(
            StagedFile(
                name=split(entry.path)[1],
                blob=blob,
                source=entry.path,
                source_size=entry.size,
                source_changed=entry.changed,
                source_tag=entry.tag,
            )
        )
        if len(reading.files) % _NOTED_FILES == 0:
            await self._note(order, step, reading)

    async def _chunks(
        self, place: Place, entry: Entry, begun: BlobRef | None
    ) -> AsyncGenerator[bytes]:
        offset = 0
        if begun is not None and begun.size <= entry.size:
            offset = begun.size
            async for chunk in self._ports.staging.read(begun):
                yield chunk
        async for chunk in place.read(entry, offset):
            yield chunk

    async def _note(self, order: ActionInput, step: StepFiles, reading: _Reading) -> None:
        """Keep what is read for the next attempt."""
        reading.cursor = reading.cursor.model_copy(
            update={"done": len(reading.files), "files": await step.manifest(reading.files)}
        )
        text = reading.cursor.model_dump_json().encode()
        await self._ports.notes.write(order.job.transfer_id, _note_of(order), text)


@dataclass
class _Arriving:
    """Bytes that are read; where the partner goes away in the middle, they end early.

    Attributes:
        broken: Why they ended early.
    """

    progress: Progress
    broken: PartnerAway | None = None

    async def of(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """The same chunks."""
        size = 0
        try:
            async for chunk in chunks:
                size += len(chunk)
                self.progress(size)
                yield chunk
        except PartnerAway as error:
            if size < _WORTH_KEEPING:
                raise
            self.broken = error


def _is_young(entry: Entry, now: datetime) -> bool:
    """Whether a file may still be written: the clocks of servers are wrong by hours at most."""
    return entry.size == 0 or entry.changed is None or now - entry.changed < _YOUNG


def _remarks_of_empty(action: ReadFile, files: Sequence[StagedFile]) -> Sequence[str]:
    """What is said of files of which no byte came, once they were read to their ends.

    Raises:
        RuleViolation: There is one, and it is not accepted.
    """
    empty = [file.source or file.name for file in files if file.blob.size == 0]
    if empty and not action.allow_empty:
        raise RuleViolation(f"{printable(empty[0])} is empty; `AllowEmpty` accepts such files")
    return [f"{len(empty)} of {len(files)} files are empty"] if empty else []


async def _found(
    place: Place, action: ReadFile, path: str
) -> tuple[Sequence[Entry], Sequence[str]]:
    """The files that a path names, and remarks; what looks like a pattern may be a name."""
    remarks: list[str] = []
    exact = literal(path)
    try:
        entries: Sequence[Entry] = [await place.stat(exact or path)]
    except FileMissing:
        try:
            if exact is None:
                entries = await _listed(place, path, action, remarks)
            else:
                entries, remarks = [], await _similar(place, exact)
        except FileMissing as error:
            if action.at_least:
                raise
            entries = []
            remarks.append(str(error))
    if len(entries) < action.at_least:
        raise FileMissing(
            f"{printable(exact or path)} names {len(entries)} files at {action.partner}; "
            f"at least {action.at_least} are expected{''.join(f'; {each}' for each in remarks)}"
        )
    if len(entries) > action.at_most:
        raise RuleViolation(
            f"{printable(path)} names more than {action.at_most} files at {action.partner}; "
            "nothing was read"
        )
    if problem := next(filter(None, map(path_problem, (entry.path for entry in entries))), None):
        raise RuleViolation(f"{problem}; nothing was read")
    if not entries:
        remarks.append("no file was found, and none is required")
    return entries, remarks


async def _similar(place: Place, path: str) -> list[str]:
    """Remarks on files whose name differs from a missing one by case or encoding alone."""
    if has_wildcards(path):
        return []
    try:
        found = await place.list(widen_pattern(path), _SPARE)
    except PortError:
        # That the file is missing is what counts.
        return []
    _, missed, _ = split_matches(path, (entry.path for entry in found))
    return nearly_named(path, missed)


async def _listed(place: Place, path: str, action: ReadFile, remarks: list[str]) -> Sequence[Entry]:
    """What a pattern names; remarks name what looks as if it should."""
    found = await place.list(widen_pattern(path), action.at_most + _SPARE)
    if len(found) > action.at_most + _SPARE:
        found = await place.list(path, action.at_most)
    named, missed, unfinished = split_matches(path, (entry.path for entry in found))
    remarks += nearly_named(path, missed)
    if unfinished:
        remarks.append(
            f"{printable(unfinished[0])}: left out, as a file that its sender still writes"
            f"{f'; {len(unfinished):,} such files' if len(unfinished) > 1 else ''}"
        )
    wanted = set(named)
    return [entry for entry in found if entry.path in wanted]


def _line(partner: Partner, file: StagedFile) -> ReceiptFile:
    return ReceiptFile(
        name=file.name,
        place=shown(partner, file.source or ""),
        size=file.blob.size,
        sha256_after=file.blob.sha256,
    )


def _check_same(order: ActionInput, lines: Sequence[ReceiptFile]) -> None:
    """Of one transfer, no partner gets other bytes than another."""
    known = dict(order.job.read_before).get(order.index)
    if known is None or known == read_digest(lines):
        return
    done = ", ".join(f"{index + 1}. {action}" for index, action in order.job.done_before)
    failed = (order.job.redriven_from or "")[:12]
    raise RuleViolation(
        f"the source is no longer what transfer {failed} has read, of which {done} is done: give "
        f"this one up, and `docflow transfer redrive {failed} --from-action 1` carries out "
        "everything with what is there now"
    )


def _without_partial(cursor: ReadCursor) -> ReadCursor:
    return cursor.model_copy(update={"partial": None})


def _note_of(order: ActionInput) -> str:
    return f"read-{order.index}"


def _action(order: ActionInput) -> ReadFile:
    assert isinstance(order.action, ReadFile)
    return order.action


_NUMBERS = 100


class SourceSettling:
    """Moves and deletes sources.

    Args:
        ports: Partners and staged bytes.
    """

    def __init__(self, ports: EndpointPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.settle_source")
    @translate_failures
    async def settle_source(self, order: SettleInput) -> SettleResult:
        """Move or delete each file that was read, if it is still the one that was read.

        What cannot be done is a remark: the files have been handed on, and stay where they are.

        Raises:
            WorkersLost: It has lost too many workers in a row.
        """
        remarks: list[str] = []
        async with (
            BoundedHeartbeater("moved or deleted sources") as beats,
            opened(self._ports.places, self._ports.partners, order.action.partner) as (_, place),
        ):
            files = await staged_files(self._ports.staging, order.files)
            for number, file in enumerate(files):
                progress = progress_of(beats, number)
                progress(0)
                remark = await _settled(place, order, file, progress)
                if remark is not None:
                    remarks.append(remark)
        return SettleResult(remarks=first_of(remarks, "more remarks about sources"))


async def _settled(
    place: Place, order: SettleInput, file: StagedFile, progress: Progress
) -> str | None:
    if file.source is None or file.source_size is None:
        return None
    entry = Entry(file.source, file.source_size, file.source_changed, file.source_tag)
    name = printable(file.source)
    deletes = order.succeeded and order.action.after is AfterSource.DELETE
    try:
        if deletes:
            await place.delete(entry)
        else:
            field = "move_to" if order.succeeded else "on_failure_move_to"
            target = fill_name(order.names[field], file.name)
            path = await _moved(place, entry, target, file, progress)
            if path != target:
                return f"the source {name} was moved to {printable(path)}: its name was taken"
    except FileChanged:
        return f"the source {name} stays: it is another file than the one that was read"
    except FileMissing:
        if deletes:
            return f"the source {name} was gone already"
        return (
            f"the source {name} is no longer there, and no file with its content has the name that "
            "it was to get: another program may have moved or deleted it"
        )
    except (Denied, PlaceError) as error:
        return f"the source {name} stays: {error}"
    return None


async def _moved(
    place: Place, entry: Entry, target: str, file: StagedFile, progress: Progress
) -> str:
    """Move a file; a number is added to a name that is taken. Returns its path."""
    for number in range(1, _NUMBERS + 1):
        path = target if number == 1 else numbered(target, number)
        try:
            await place.move(entry, path)
        except NameTaken:
            continue
        except FileMissing:
            # An attempt before this one may have moved it, here or to a later number.
            if not await _is_moved(place, entry, path, file.blob.sha256, progress):
                continue
        return path
    raise NameRefused(f"{printable(file.name)} and {_NUMBERS} names with a number are taken")


async def _is_moved(
    place: Place, entry: Entry, path: str, sha256: str | None, progress: Progress
) -> bool:
    """Whether a file is the source under its new name: by its etag, or else by its content.

    Raises:
        FileMissing: There is no file of that name.
    """
    found = await place.stat(path)
    if found.size != entry.size:
        return False
    if entry.tag is not None and found.tag == entry.tag:
        return True
    digest, size = hashlib.sha256(), 0
    try:
        async for chunk in place.read(found):
            digest.update(chunk)
            size += len(chunk)
            progress(size)
    except FileChanged:
        return False
    return digest.hexdigest() == sha256
