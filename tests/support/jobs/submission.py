"""The submission service over fakes at its ports."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from activities.jobs.api import JobTypes
from adapters.ports.errors import Denied
from tests.support.jobs.counting import CountWords
from tests.support.memory.blobs import MemoryBlobs
from workers.jobs.runs import StartedJob
from workers.jobs.submission import JobInputs, JobSubmission, WebhookReceivers
from workers.shared.settings.webhooks import ReceiverSettings
from workflows.jobs.runs import JobInput


@dataclass
class Runs:
    """Remembers what was started."""

    orders: list[JobInput] = field(default_factory=list)
    note: str | None = None
    """On a run that was there before."""

    async def start(self, order: JobInput, *, rerun: bool = False) -> StartedJob:
        before = [each for each in self.orders if each.job_id == order.job_id]
        self.orders.append(order)
        first = before[0] if before else order
        created = rerun or not before
        notes = () if created or self.note is None else (self.note,)
        attempt = 1 + len(before) * rerun
        return StartedJob(
            job_id=order.job_id, attempt=attempt, created=created, notes=notes, alias=first.alias
        )


@dataclass
class Secrets:
    """Keeps secrets, unless it has no key."""

    key: bool = True
    kept: dict[str, str] = field(default_factory=dict)

    async def keep(self, job_id: str, secret: str) -> str:
        if not self.key:
            raise Denied("DOCFLOW_WEBHOOK_KEY is not set")
        reference = f"kept:{len(self.kept)}"
        self.kept[reference] = secret
        return reference

    async def forget(self, reference: str) -> None:
        self.kept.pop(reference, None)

    def reference_of(self, name: str) -> str:
        if name != "client":
            raise Denied(f"there is no {name!r}")
        return f"named:{name}"

    async def is_other(self, job_id: str, secret: str) -> bool:
        return bool(self.kept) and secret not in self.kept.values()

    async def secrets(self, reference: str) -> Sequence[bytes]:
        return [self.kept[reference].encode()]


@dataclass
class SubmissionSetup:
    """The service, and what it stands on."""

    scratch: Path
    settings: dict[str, Any] = field(default_factory=dict)
    runs: Runs = field(default_factory=Runs)
    secrets: Secrets = field(default_factory=Secrets)
    bronze: MemoryBlobs = field(default_factory=MemoryBlobs)
    types: JobTypes = field(default_factory=lambda: JobTypes(CountWords))

    @property
    def service(self) -> JobSubmission:
        return JobSubmission(
            self.types,
            JobInputs(self.bronze, self.scratch),
            WebhookReceivers(self.secrets, ReceiverSettings(**self.settings)),
            self.runs,
        )

    async def put(self, name: str, content: str = "a b c") -> None:
        """A file in the bronze container."""
        path = self.scratch / "content"
        path.write_text(content)
        await self.bronze.upload(path, name)
