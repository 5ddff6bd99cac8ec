"""Files that commands write are written whole, and a failure names the file."""

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from workers.shared.cli.errors import CommandError, ExitCode
from workers.shared.cli.output import output_file


def test_what_is_not_a_file_is_not_replaced(tmp_path: Path) -> None:
    for target, reason in ((tmp_path, "is not a file"), (tmp_path / ("n" * 300), "cannot write")):
        with pytest.raises(CommandError, match=reason), output_file(target, force=True):
            raise AssertionError("nothing can be written there")


def test_a_file_that_cannot_be_completed_leaves_nothing_behind(tmp_path: Path) -> None:
    target = tmp_path / "report.xlsx"
    target.write_bytes(b"mine")
    with (
        pytest.raises(CommandError, match=f"cannot write {target}: No space left") as full,
        output_file(target, force=True) as partial,
    ):
        partial.write_bytes(b"she")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert full.value.exit_code is ExitCode.NOT_WRITTEN
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [
        ("report.xlsx", b"mine")
    ]


def test_a_read_only_folder_is_reported_before_anything_is_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(path: Path, **options: bool) -> NoReturn:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    target = tmp_path / "report.xlsx"
    with (
        pytest.raises(CommandError, match=f"cannot write {target}: Read-only file system"),
        output_file(target, force=False),
    ):
        raise AssertionError("nothing can be written there")
