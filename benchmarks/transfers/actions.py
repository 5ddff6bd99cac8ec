"""The actions of one transfer, one after the other, in this process; `files` starts it.

Reads its order from standard input, and writes what became of it to standard output.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, Final

from temporalio.testing import ActivityEnvironment

from activities.transfers.crypto import Crypto, CryptoPorts
from activities.transfers.far_ends import EndPorts
from activities.transfers.read_file import FileReading
from activities.transfers.scan import Scanning, ScanPorts
from activities.transfers.write_file import FileWriting
from adapters.files.blobs import FolderBlobs
from adapters.files.openpgp import GnuPg
from adapters.memory.transfers.partners import MemoryPartners
from adapters.places.egress import Egress
from adapters.places.opening import PartnerPlaces
from adapters.places.sessions import Sessions
from adapters.scanning import Clamd, ClamdAddress
from adapters.secrets.references import ReferencedSecrets
from adapters.staging.notes import BlobNotes
from adapters.staging.store import BlobStaging, SealedBlobs, StagingKeys
from contracts.transfers import (
    Action,
    ActionOrder,
    ActionResult,
    Decrypt,
    FileJobOrder,
    FileNotice,
    HostKey,
    Limits,
    Manifest,
    OpenPgpKey,
    Overwrite,
    Partner,
    PlaceKind,
    ReadFile,
    Scan,
    WriteFile,
)

_ID: Final = "b" * 64
_MAX_BYTES: Final = 1_500 << 20


def partners_of(order: dict[str, Any]) -> MemoryPartners:
    """Where the file comes from, with its keys, and where it goes."""
    key = OpenPgpKey(
        fingerprint=order["fingerprint"], public=order["public"], private="env:PRIVATE", own=True
    )
    theirs = key.model_copy(update={"private": None, "own": False})
    limits = Limits(sessions=20, connections_per_second=100)
    source = Partner(
        name="source",
        kind=PlaceKind.SFTP,
        host="127.0.0.1",
        port=order["port"],
        user="docflow",
        private_key="env:LOGIN",
        host_keys=(HostKey(key=order["host_key"]),),
        keys=(key, theirs),
        limits=limits,
    )
    target = Partner(
        name="target",
        kind=PlaceKind.AZURE_BLOB,
        host=order["account"],
        container=order["container"],
        token="env:STORAGE",
        limits=limits,
    )
    return MemoryPartners(source, target)


def action_order(
    index: int, action: Action, names: dict[str, str], files: Manifest, previous: str
) -> ActionOrder:
    """The order of one action."""
    now = datetime.now(UTC)
    event = FileNotice(id="1", source="s", type="t", subject="u", account_id="A", time=now)
    job = FileJobOrder(
        transfer_id=_ID,
        queue="jobstmsroute",
        event=event,
        digest="e" * 64,
        arrived=now,
        way_in="bench",
    )
    return ActionOrder(
        job=job, index=index, action=action, names=names, files=files, previous=previous
    )


async def _one_byte() -> AsyncIterator[bytes]:
    yield b"x"


async def carried_out(order: dict[str, Any]) -> dict[str, Any]:
    """Read, decrypt, scan, and write what is clean."""
    folder = Path(order["folder"])
    (folder / "staged").mkdir(exist_ok=True)
    variables = {
        "PRIVATE": order["private"],
        "LOGIN": order["login"],
        "STORAGE": order["storage"],
        "KEY": order["key"] or "",
    }
    secrets = ReferencedSecrets(variables)
    blobs = FolderBlobs(folder / "staged")
    keys = StagingKeys(secrets, "env:KEY" if order["key"] else None)
    staging = BlobStaging(SealedBlobs(blobs, keys))
    partners = partners_of(order)
    places = PartnerPlaces(secrets, Sessions(partners), Egress(local=True))
    ends = EndPorts(places, partners, staging, BlobNotes(blobs, folder / "scratch"), places)
    clam = Clamd(ClamdAddress.parsed(order["clamd"]), _MAX_BYTES)
    crypto = Crypto(CryptoPorts(GnuPg(secrets), partners, staging, folder / "scratch"))
    scanning = Scanning(ScanPorts(clam, blobs, staging, undated=True))
    name = order["name"]
    write = WriteFile(partner="target", overwrite=Overwrite.REPLACE)
    steps: list[tuple[Any, Action, dict[str, str]]] = [
        (FileReading(ends).read_file, ReadFile(partner="source", path=name), {"path": name}),
        (crypto.decrypt, Decrypt(partner="source"), {}),
        (scanning.scan, Scan(), {}),
        (FileWriting(ends).write_file, write, {"path": "by-docflow"}),
    ]
    # A worker knows its scanner before a file comes.
    await clam.scan(_one_byte(), 1)
    files, previous, seconds = Manifest(), "e" * 64, list[float]()
    infected: str | None = None
    for index, (activity, action, names) in enumerate(steps):
        began = perf_counter()
        result: ActionResult = await ActivityEnvironment().run(
            activity, action_order(index, action, names, files, previous)
        )
        seconds.append(perf_counter() - began)
        files, previous, infected = result.files, result.step_sha256, result.infected
        if infected is not None:
            break
    await staging.remove(_ID)
    return {"seconds": sum(seconds), "steps": seconds, "infected": infected}


if __name__ == "__main__":
    json.dump(asyncio.run(carried_out(json.load(sys.stdin))), sys.stdout)
