"""Folders of stacks: one process each, and nothing deleted that the demo did not make."""

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from stack.children import StackError

_LOCK: Final = "stack.lock"
_DEMO: Final = ".docflow-demo"


@contextmanager
def stack_folder(folder: Path) -> Generator[None]:
    """Hold a folder, made when missing, until the block or the process ends, even by SIGKILL.

    Raises:
        StackError: The folder cannot be used, or another process holds it.
    """
    with _usable(folder):
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with _usable(folder):
            _take(lock, folder)
        yield
    finally:
        os.close(lock)


@contextmanager
def demo_folder(folder: Path) -> Generator[None]:
    """Hold a folder of the demo and empty it first.

    Raises:
        StackError: The folder cannot be used, another process holds it, or it has files and is none
            of the demo.
    """
    with _usable(folder):
        names = {file.name for file in folder.iterdir()} if folder.exists() else set[str]()
    if names - {_LOCK} and _DEMO not in names:
        raise StackError(
            f"the folder {folder} has files and was not made by the demo, which would delete them; "
            "remove it, or choose another with --folder"
        )
    with stack_folder(folder):
        with _usable(folder):
            (folder / _DEMO).write_text("`docflow demo` empties this folder when it starts.\n")
            _empty(folder)
        yield


@contextmanager
def _usable(folder: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StackError(f"the folder {folder} cannot be used: {error.strerror}") from error


def _take(lock: int, folder: Path) -> None:
    """Lock the file for this process and write its id there.

    Raises:
        StackError: Another process has locked it.
    """
    try:
        # The kernel releases it when the process ends; children do not inherit it.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 20, 0).decode().strip()
        raise StackError(
            f"a stack runs in {folder} already, process {holder}; stop it, or choose another with "
            "--folder"
        ) from None
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _empty(folder: Path) -> None:
    for file in folder.iterdir():
        if file.name in (_LOCK, _DEMO):
            continue
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        else:
            file.unlink()
