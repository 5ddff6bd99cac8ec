"""`transfers.scan`: files are clean, infected, or could not be scanned."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from temporalio import activity

from activities.failures import translate_failures
from activities.transfers.step_files import StepFiles, line_of, once
from adapters.ports import Blobs, Denied
from adapters.ports.transfer_files import Scanner, ScanVerdict
from adapters.ports.transfers import Staging
from contracts.transfers import (
    ActionOrder,
    ActionResult,
    NotScanned,
    ReceiptFile,
    Scan,
    StagedFile,
)


@dataclass(frozen=True)
class ScanPorts:
    """What scans are given."""

    scanner: Scanner | None
    """None: there is none."""
    quarantine: Blobs
    """A container of its own, which is read for investigations only."""
    staging: Staging
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
    async def scan(self, order: ActionOrder) -> ActionResult:
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
        self, scanner: Scanner, staging: Staging, file: StagedFile, action: Scan
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
        self, order: ActionOrder, staging: Staging, number: int, file: StagedFile, finding: str
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
