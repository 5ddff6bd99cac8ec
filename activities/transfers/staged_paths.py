"""Staged files on the scratch disk, for what cannot work on a stream."""

import asyncio
import os
import shutil
from pathlib import Path

from activities.scratch import disk_full
from adapters.ports.transfers import Staging
from contracts.transfers import StagedFile
from domain.errors import RuleViolation


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
