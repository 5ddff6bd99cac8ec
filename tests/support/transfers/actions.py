"""Actions at endpoints, for tests: orders, staged files, a partner."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from activities.transfers.endpoints import EndpointPorts, StepFiles, staged_files
from activities.transfers.read_file import FileReading
from adapters.places.partner_places import PartnerPlaces
from adapters.staging import BlobNotes, BlobStaging, SealedBlobs, StagingKeys
from tests.support.imports.activities import environment
from tests.support.memory.blobs import MemoryBlobs
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.places import open_places, pieces
from tests.support.transfers.secrets import PlantedSecrets
from workflows.transfers.events import FileNotice
from workflows.transfers.partners import Partner
from workflows.transfers.receipts import ReceiptStep
from workflows.transfers.runs import ActionInput, ActionResult, FileJobInput, Manifest, StagedFile
from workflows.transfers.settings import Action, ReadFile

TRANSFER = hashlib.sha256(b"a transfer").hexdigest()
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@dataclass
class Endpoints:
    """Partners, and the staging area of a run."""

    scratch: Path
    partners: MemoryPartners
    places: PartnerPlaces
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    now: datetime = NOON
    pauses: list[float] = field(default_factory=list[float])

    async def pause(self, seconds: float) -> None:
        """Take no time."""
        self.pauses.append(seconds)

    @classmethod
    def at(
        cls, scratch: Path, *partners: Partner, secrets: Mapping[str, str] | None = None
    ) -> Self:
        """With these partners."""
        store = MemoryPartners(*partners)
        return cls(scratch, store, open_places(secrets, [scratch], store=store))

    @property
    def ports(self) -> EndpointPorts:
        """What activities are given."""
        staging = BlobStaging(SealedBlobs(self.blobs, StagingKeys(PlantedSecrets(), None)))
        notes = BlobNotes(self.blobs)
        return EndpointPorts(
            self.places, self.partners, staging, notes, self.places, lambda: self.now, self.pause
        )

    def order(
        self, action: Action, names: dict[str, str], files: Manifest | None = None, **fields: Any
    ) -> ActionInput:
        """An action of the run."""
        event = FileNotice(
            id="1", source="s", type="t", subject="u", account_id="A", time=NOON, data={}
        )
        job = FileJobInput(
            transfer_id=TRANSFER,
            queue="jobs",
            event=event,
            digest="d" * 64,
            arrived=NOON,
            way_in="jobs",
        )
        return ActionInput(
            job=job,
            index=0,
            action=action,
            names=names,
            files=files or Manifest(),
            previous="e" * 64,
            **fields,
        )

    async def staged(self, order: ActionInput, **contents: bytes) -> Manifest:
        """Files in the staging area, by name."""
        step, files = StepFiles(self.ports.staging, order), list[StagedFile]()
        for number, (name, content) in enumerate(contents.items()):
            blob = await step.stage(number, pieces(content))
            files.append(StagedFile(name=name, blob=blob, source_changed=NOON))
        return await step.manifest(files)

    async def contents(self, manifest: Manifest) -> dict[str, bytes]:
        """What a manifest lists."""
        staging, found = self.ports.staging, dict[str, bytes]()
        for file in await staged_files(staging, manifest):
            found[file.name] = b"".join([piece async for piece in staging.read(file.blob)])
        return found


async def step_of(ends: Endpoints, result: ActionResult) -> ReceiptStep:
    """What an action says in the receipt, checked against its digest."""
    assert result.step is not None
    content = b"".join([piece async for piece in ends.ports.staging.read(result.step)])
    step = ReceiptStep.model_validate_json(content)
    assert step.sha256 == result.step_sha256
    return step


def reading(path: str, **fields: Any) -> ReadFile:
    """An action that reads from the partner."""
    return ReadFile(partner="acme", path=path, **fields)


async def read(ends: Endpoints, action: ReadFile) -> ActionResult:
    """Read files of the partner."""
    order = ends.order(action, {"path": action.path})
    return await environment().run(FileReading(ends.ports).read_file, order)


def old(path: Path, content: bytes, age: float = 3_600) -> None:
    """A file that was last changed so many seconds before noon."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (NOON.timestamp() - age,) * 2)
