"""Staged files on the scratch disk: room that is missing now, and room that never will be there."""

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from activities.transfers.step_files import staged_path
from adapters.ports import Unavailable
from contracts.blobs import BlobRef
from contracts.transfers import StagedFile
from domain.errors import RuleViolation


def staged(size: int) -> StagedFile:
    return StagedFile(name="large.zip", blob=BlobRef(name="staging/large", size=size))


async def test_a_file_that_no_scratch_disk_holds_is_not_waited_for(tmp_path: Path) -> None:
    disk = shutil.disk_usage(tmp_path)
    untouched = cast(Any, None)
    with pytest.raises(RuleViolation, match="the whole scratch disk has"):
        await staged_path(untouched, staged(disk.total + 1), tmp_path)
    with pytest.raises(Unavailable, match="scratch disk is full") as full:
        await staged_path(untouched, staged(disk.total), tmp_path)
    assert full.value.room == disk.total
    assert list(tmp_path.iterdir()) == []
