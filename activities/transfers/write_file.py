"""`transfers.write_file`: the files of a run to a partner."""

import unicodedata
from collections.abc import Iterator, Sequence

from temporalio import activity

from activities.failures import translate_failures
from activities.heartbeat import Heartbeater
from activities.transfers.endpoints import EndpointPorts, NotedNamings, opened, progress_of, shown
from activities.transfers.step_files import StepFiles, bounded
from adapters.ports.places import Place, PlaceError, Progress, Written
from contracts.transfers import (
    ActionOrder,
    ActionResult,
    Overwrite,
    Partner,
    ReceiptFile,
    StagedFile,
    WriteFile,
)
from domain.errors import RuleViolation
from domain.transfers.paths import printable
from domain.transfers.templates import filled


class FileWriting:
    """Writes files.

    Args:
        ports: Partners, staged bytes and notes.
    """

    def __init__(self, ports: EndpointPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.write_file")
    @translate_failures
    async def write_file(self, order: ActionOrder) -> ActionResult:
        """Write every file of a run; what an earlier attempt has written is not written again.

        Raises:
            NameTaken: A name is taken by another file, which may not be replaced.
            NameRefused: The endpoint cannot hold a name.
            RuleViolation: Two files would get the same name.
            WorkersLost: It has lost too many workers in a row.
        """
        async with bounded(order) as beats:
            return await self._write_all(order, beats)

    async def _write_all(self, order: ActionOrder, beats: Heartbeater) -> ActionResult:
        action = _action(order)
        step = StepFiles(self._ports.staging, order)
        files = await step.files(order.files)
        paths = _paths(action, order.names["path"], files)
        lines: list[ReceiptFile] = []
        remarks: list[str] = [*_alike(action, paths)]
        end = opened(self._ports.places, self._ports.partners, action.partner)
        async with end as (partner, place):
            for number, (file, path) in enumerate(zip(files, paths, strict=True)):
                try:
                    progress = progress_of(beats, number)
                    written = await self._write(order, place, number, file, path, progress)
                except PlaceError as error:
                    if len(files) == 1:
                        raise
                    raise PlaceError(
                        f"{number} of {len(files)} files are written, and the next is not: {error}"
                    ) from error
                lines.append(_line(partner, file, written))
                remarks += [f"{printable(file.name)}: {remark}" for remark in written.remarks]
        if not files:
            remarks.append("there was no file to write")
        return await step.result(
            order.files,
            lines,
            self._ports.now(),
            remarks=remarks,
            guarantee="; ".join(dict.fromkeys(line.guarantee or "" for line in lines))[:100]
            or None,
        )

    async def _write(
        self,
        order: ActionOrder,
        place: Place,
        number: int,
        file: StagedFile,
        path: str,
        progress: Progress,
    ) -> Written:
        action, run = _action(order), order.job.transfer_id
        if file.blob.sha256 is None:
            raise RuleViolation(f"the hash of {printable(file.name)} is not known")
        name = f"write-{order.index}-{number}"
        return await place.write(
            self._ports.staging.read(file.blob),
            path,
            size=file.blob.size,
            sha256=file.blob.sha256,
            overwrite=action.overwrite,
            verify=action.verify,
            owner=f"{run}/{name}",
            mode=None if action.mode is None else int(action.mode, 8),
            changed=file.source_changed if action.keep_time else None,
            progress=progress,
            namings=NotedNamings(self._ports.notes, run, name),
        )


def _paths(action: WriteFile, template: str, files: Sequence[StagedFile]) -> Sequence[str]:
    """Where each file goes."""
    paths = [filled(template, file.name) for file in files]
    if len(set(paths)) < len(paths) and action.overwrite is not Overwrite.NUMBER:
        twice = next(path for path in paths if paths.count(path) > 1)
        raise RuleViolation(
            f"{paths.count(twice)} files would be written as {printable(twice)}; "
            "`{name}` in `Path` keeps them apart"
        )
    return paths


def _alike(action: WriteFile, paths: Sequence[str]) -> Iterator[str]:
    """Remarks on paths that some endpoints take for one, where the last file replaces the others.

    Otherwise the endpoint says that the name is taken.
    """
    known: dict[str, str] = {}
    for path in paths if action.overwrite is Overwrite.REPLACE else ():
        other = known.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
        if other != path:
            yield (
                f"{printable(path)} and {printable(other)} differ in case or in the encoding of "
                "accents alone: where the endpoint takes them for one name, it has the last one "
                "only"
            )


def _line(partner: Partner, file: StagedFile, written: Written) -> ReceiptFile:
    return ReceiptFile(
        name=file.name,
        place=shown(partner, written.entry.path),
        size=file.blob.size,
        sha256_before=file.blob.sha256,
        sha256_after=file.blob.sha256,
        guarantee=written.guarantee[:100],
    )


def _action(order: ActionOrder) -> WriteFile:
    assert isinstance(order.action, WriteFile)
    return order.action
