"""Files into archives and out of them, and whether they are clean."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from temporalio import activity

from activities.shared.failures import translate_failures
from activities.shared.scratch import scratch_folder
from activities.transfers.endpoints import StepFiles, line_of, once, remarks_of_empty, staged_path
from adapters.files.archives import ArchiveFiles
from adapters.ports.blobs import Blobs
from adapters.ports.errors import Denied, UnreadableDocument
from adapters.ports.transfers import ArchiveInput, ExtractionLimits, Scanner, ScanVerdict, Secrets
from adapters.staging import BlobStaging
from workflows.shared.errors import InvalidDocument, RuleViolation
from workflows.transfers.receipts import ReceiptFile
from workflows.transfers.runs import ActionInput, ActionResult, StagedFile
from workflows.transfers.settings import (
    ArchiveFormat,
    Compress,
    Extract,
    NotScanned,
    Scan,
    fill_name,
)

_SUFFIXES: Final = {
    ArchiveFormat.ZIP: ".zip",
    ArchiveFormat.GZIP: ".gz",
    ArchiveFormat.TAR: ".tar",
    ArchiveFormat.TAR_GZ: ".tar.gz",
}


@dataclass(frozen=True)
class ArchivePorts:
    """What actions with archives are given."""

    archives: ArchiveFiles
    secrets: Secrets
    staging: BlobStaging
    scratch: Path


@dataclass
class _Extracted:
    """What is known of one archive."""

    files: list[StagedFile] = field(default_factory=list[StagedFile])
    plain: int = 0
    """Those that were not encrypted."""
    guessed: str | None = None
    """Encoding in which their names were read."""


class ArchiveSteps:
    """Makes archives and takes them apart.

    Args:
        ports: ArchiveFiles, passwords and staged bytes.
    """

    def __init__(self, ports: ArchivePorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.compress")
    @translate_failures
    async def compress(self, order: ActionInput) -> ActionResult:
        """Put the files into one archive, or with gzip each into one of its own.

        Raises:
            RuleViolation: A password is set for a format that has none, or the name of one
                archive is made of the names of several files.
        """
        action = order.action
        assert isinstance(action, Compress), "the activity is that of the action"
        if action.password and action.format is not ArchiveFormat.ZIP:
            raise RuleViolation("only a ZIP archive can have a password")
        password = await self._password(action.password)
        async with StepFiles(self._ports.staging, order) as step:
            files = await step.given()
            groups = [[f] for f in files] if action.format is ArchiveFormat.GZIP else [files]
            groups = [group for group in groups if group]
            after: list[StagedFile] = []
            lines: list[ReceiptFile] = []
            for number, group in enumerate(groups):
                name = _archive_name(order.names["name"], group) + _SUFFIXES[action.format]
                inputs = [_input(step.staging, file) for file in group]
                async with aclosing(
                    self._ports.archives.compress(action.format, inputs, password)
                ) as chunks:
                    blob = await step.stage(number, chunks)
                after.append(_made_of(group, StagedFile(name=name, blob=blob)))
                lines += [line_of(file, None) for file in group]
                lines.append(line_of(None, after[-1], f"holds {len(group):,} files"))
            return await step.result(await step.manifest(after), lines)

    @activity.defn(name="transfers.extract")
    @translate_failures
    async def extract(self, order: ActionInput) -> ActionResult:
        """Replace every archive by the files in it.

        Raises:
            UnreadableDocument: One is damaged, hostile, encrypted without its password, or
                unpacks to more than is allowed.
            InvalidDocument: A name in one leads elsewhere, or is there twice.
        """
        action = order.action
        assert isinstance(action, Extract), "the activity is that of the action"
        password = await self._password(action.password)
        async with StepFiles(self._ports.staging, order) as step:
            after: list[StagedFile] = []
            lines: list[ReceiptFile] = []
            remarks: list[str] = []
            for archive in await step.given():
                try:
                    found = await self._extracted(step, action, archive, password, after)
                except UnreadableDocument as error:
                    raise UnreadableDocument(f"{archive.name!r}: {error}") from error
                except InvalidDocument as error:
                    raise InvalidDocument(f"{archive.name!r}: {error}") from error
                after += found.files
                lines.append(line_of(archive, None, f"{len(found.files):,} files"))
                lines += [line_of(None, file) for file in found.files]
                if found.plain and password is not None:
                    remarks.append(
                        f"{archive.name!r}: {found.plain:,} files were not encrypted, although a "
                        "password is set"
                    )
                if found.guessed is not None:
                    remarks.append(
                        f"{archive.name!r} does not say how its names are encoded: they were read "
                        f"as {found.guessed}; if they are wrong, set NameEncoding"
                    )
            remarks += remarks_of_empty(after)
            return await step.result(await step.manifest(after), lines, remarks=remarks)

    async def _extracted(
        self,
        step: StepFiles,
        action: Extract,
        archive: StagedFile,
        password: str | None,
        before: Sequence[StagedFile],
    ) -> "_Extracted":
        limits = ExtractionLimits(action.at_most, action.bytes_at_most, action.ratio_at_most)
        found = _Extracted()
        with scratch_folder(self._ports.scratch) as folder:
            members = self._ports.archives.extract(
                await staged_path(step.staging, archive, folder),
                archive.name,
                limits,
                format=action.format,
                password=password,
                encoding=action.name_encoding,
                flatten=action.flatten,
            )
            async with aclosing(members):
                async for member in members:
                    blob = await step.stage(len(before) + len(found.files), member.chunks)
                    file = archive.model_copy(update={"name": member.name, "blob": blob})
                    found.files.append(file)
                    found.plain += not member.encrypted
                    found.guessed = member.guessed
        return found

    async def _password(self, reference: str | None) -> str | None:
        if reference is None:
            return None
        return (await self._ports.secrets.secret(reference)).rstrip("\r\n")


def _input(staging: BlobStaging, file: StagedFile) -> ArchiveInput:
    return ArchiveInput(
        file.name,
        file.blob.size,
        file.blob.sha256 or "",
        partial(staging.read, file.blob),
        file.source_changed,
    )


def _archive_name(template: str, files: Sequence[StagedFile]) -> str:
    if len(files) == 1:
        return fill_name(template, files[0].name)
    names = {fill_name(template, file.name) for file in files}
    if len(names) > 1:
        raise RuleViolation(
            f"the name {template!r} of the archive is another one for each of the {len(files):,} "
            "files in it: set Name to one without {name}"
        )
    return names.pop()


def _made_of(files: Sequence[StagedFile], archive: StagedFile) -> StagedFile:
    """An archive of one file comes from where that came from."""
    if len(files) != 1:
        return archive
    return files[0].model_copy(update={"name": archive.name, "blob": archive.blob})


@dataclass(frozen=True)
class ScanPorts:
    """What scans are given."""

    scanner: Scanner | None
    """None: there is none."""
    quarantine: Blobs
    """A container of its own, which is read for investigations only."""
    staging: BlobStaging
    undated: bool = False
    """Signatures that state no age are taken for new ones: a scanner with signatures of one's
    own states none."""


class Scanning:
    """Scans files.

    Args:
        ports: Scanner, quarantine and staged bytes.
    """

    def __init__(self, ports: ScanPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.scan")
    @translate_failures
    async def scan(self, order: ActionInput) -> ActionResult:
        """Scan every file; those that are infected, or as good as, go to quarantine.

        Returns:
            With `infected` set, the run fails and nothing is written on.

        Raises:
            Unavailable: The scanner does not answer: the run waits for it.
            Denied: There is none.
        """
        action = order.action
        assert isinstance(action, Scan), "the activity is that of the action"
        if self._ports.scanner is None:
            raise Denied("this worker has no virus scanner: set CLAMD_ADDRESS")
        async with StepFiles(self._ports.staging, order) as step:
            after: list[StagedFile] = []
            lines: list[ReceiptFile] = []
            remarks: list[str] = []
            infected: list[str] = []
            for number, file in enumerate(await step.given()):
                verdict = await self._verdict(self._ports.scanner, step.staging, file, action)
                finding = _said(verdict)
                lines.append(line_of(file, file, finding))
                after.append(file.model_copy(update={"scanned": finding[:500]}))
                if verdict.clean:
                    continue
                if verdict.infected is None and action.not_scanned is NotScanned.ALLOW:
                    remarks.append(f"{file.name!r} is written on, and was {finding}")
                    continue
                infected.append(f"{file.name!r}: {finding}")
                await self._quarantine(order, step.staging, number, file, finding)
            more = f" (and {len(infected) - 1:,} more)" if len(infected) > 1 else ""
            return await step.result(
                await step.manifest(after),
                lines,
                remarks=[*infected, *remarks],
                infected=infected[0][:400] + more if infected else None,
            )

    async def _verdict(
        self, scanner: Scanner, staging: BlobStaging, file: StagedFile, action: Scan
    ) -> ScanVerdict:
        verdict = await scanner.scan(staging.read(file.blob), file.blob.size)
        if not verdict.clean:
            return verdict
        if verdict.signatures is None:
            if self._ports.undated:
                return verdict
            return ScanVerdict(clean=False, reason="the age of the signatures is not known")
        if verdict.signatures < datetime.now(UTC) - timedelta(days=action.signatures_days):
            when = f"{verdict.signatures:%Y-%m-%d}"
            return ScanVerdict(
                clean=False,
                reason=f"the signatures are of {when}, more than {action.signatures_days} days old",
                signatures=verdict.signatures,
            )
        return verdict

    async def _quarantine(
        self, order: ActionInput, staging: BlobStaging, number: int, file: StagedFile, finding: str
    ) -> None:
        """Keep a file where people can look into it, with what is known of it beside it."""
        stem = f"quarantine/{order.job.transfer_id}/{order.index:02}-{number:05}"
        facts = file.model_copy(update={"scanned": finding[:500]}).model_dump_json(indent=2)
        await self._kept(f"{stem}.bin", partial(staging.read, file.blob))
        await self._kept(f"{stem}.json", partial(once, facts.encode()))

    async def _kept(self, name: str, chunks: "partial[AsyncIterator[bytes]]") -> None:
        try:
            await self._ports.quarantine.write(name, chunks())
        except FileExistsError:
            # By an attempt before this one: a file appears there when it is whole.
            return


def _said(verdict: ScanVerdict) -> str:
    if verdict.clean:
        age = f", signatures of {verdict.signatures:%Y-%m-%d}" if verdict.signatures else ""
        return f"clean{age}"
    if verdict.infected is not None:
        return f"infected with {verdict.infected}"
    return f"not scanned: {verdict.reason}"
