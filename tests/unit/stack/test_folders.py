"""Folders of stacks are one process's at a time, and the demo empties none but its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stack.children import StackError
from stack.folders import demo_folder, stack_folder
from tests.support.cli import run_docflow

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("command", [("dev",), ("demo",)], ids=" ".join)
def test_a_second_stack_in_a_folder_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    with demo_folder(tmp_path):
        (tmp_path / "env").write_text("settings of the first")
        second = run_docflow(*command, "--folder", str(tmp_path))
        assert (tmp_path / "env").read_text() == "settings of the first"
    assert second.exit_code == 1
    assert second.stderr.splitlines() == [
        f"docflow: a stack runs in {tmp_path} already, process {os.getpid()}; stop it, or choose "
        "another with --folder"
    ]


def test_a_killed_process_releases_its_folder(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys; from stack.folders import stack_folder\n"
        "with stack_folder(pathlib.Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StackError, match=f"process {holder.pid};"), stack_folder(tmp_path):
            pytest.fail("two hold it")
        holder.kill()
        holder.wait()
    with stack_folder(tmp_path):
        pass


def test_the_demo_refuses_a_folder_with_files_of_others(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    refused = run_docflow("demo", "--folder", str(tmp_path))
    assert refused.exit_code == 1
    assert refused.stderr.splitlines() == [
        f"docflow: the folder {tmp_path} has files and was not made by the demo, which would "
        "delete them; remove it, or choose another with --folder"
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_demo_refuses_the_folder_of_a_kept_stack(tmp_path: Path) -> None:
    with stack_folder(tmp_path):
        (tmp_path / "docflow.db").touch()
    with pytest.raises(StackError, match="was not made by the demo"), demo_folder(tmp_path):
        pytest.fail("it was emptied")
    assert (tmp_path / "docflow.db").exists()


def test_the_demo_empties_its_own_folder(tmp_path: Path) -> None:
    folder, outside = tmp_path / "new" / "demo", tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    with demo_folder(folder):
        (folder / "blobs").mkdir()
        (folder / "blobs" / "one").touch()
        (folder / "link").symlink_to(outside)
    with demo_folder(folder):
        assert {file.name for file in folder.iterdir()} == {"stack.lock", ".docflow-demo"}
    assert (outside / "kept").exists()


@pytest.mark.parametrize("command", [("dev",), ("demo",)], ids=" ".join)
@pytest.mark.parametrize("below", ["", "folder"])
def test_a_file_in_place_of_a_folder_is_named(
    command: tuple[str, ...], below: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    refused = run_docflow(*command, "--folder", str(file / below))
    assert refused.exit_code == 1
    assert refused.stderr.splitlines() == [
        f"docflow: the folder {file / below} cannot be used: Not a directory"
    ]


def test_a_read_only_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    folder = tmp_path / "new"
    says = re.escape(f"the folder {folder} cannot be used: Read-only file system")
    with pytest.raises(StackError, match=f"^{says}$"), stack_folder(folder):
        pytest.fail("it was made")
