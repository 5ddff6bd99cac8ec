"""`transfers.settle_source`: what becomes of sources once a run has ended."""

import hashlib

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import BoundedHeartbeater
from activities.transfers.endpoints import EndpointPorts, opened, progress_of
from activities.transfers.step_files import staged_files
from adapters.ports import Denied
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    NameRefused,
    NameTaken,
    Place,
    PlaceError,
    Progress,
)
from contracts.transfers import AfterSource, SettleOrder, SettleResult, StagedFile
from domain.transfers.paths import numbered, printable
from domain.transfers.remarks import first_of
from domain.transfers.templates import filled

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
    async def settle_source(self, order: SettleOrder) -> SettleResult:
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
    place: Place, order: SettleOrder, file: StagedFile, progress: Progress
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
            target = filled(order.names[field], file.name)
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
