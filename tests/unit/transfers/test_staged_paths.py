"""Staged files on the scratch disk: room that is missing now, and room that never will be there."""

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from activities.transfers.endpoints import staged_path
from adapters.ports.errors import Unavailable
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import RuleViolation
from workflows.transfers.runs import StagedFile


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
