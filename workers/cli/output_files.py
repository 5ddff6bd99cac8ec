"""Files that commands write for a person."""

import os
import stat
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from workers.cli.errors import CommandError, ExitCode, UsageError


@contextmanager
def output_file(target: Path, *, force: bool) -> Generator[Path]:
    """Yield a new file beside `target`, which takes its place when the block succeeds.

    Args:
        target: File to write.
        force: Replace a file that exists.

    Raises:
        UsageError: There is something at `target` that is not to be replaced.
        CommandError: The file cannot be written; nothing is left behind.
    """
    partial = target.parent / f".docflow-{uuid.uuid4().hex}.part"
    try:
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            raise UsageError(f"{target} is not a file; name another one with --out")
        if mode is not None and not force:
            raise UsageError(f"{target} exists; name another file with --out, or add --force")
        partial.touch(exist_ok=False)
        yield partial
        os.replace(partial, target)
    except OSError as error:
        reason = f"cannot write {target}: {error.strerror}"
        raise CommandError(reason, ExitCode.NOT_WRITTEN) from error
    finally:
        # In a folder that takes no files there is none to remove.
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _mode(target: Path) -> int | None:
    """Type and permissions; None: nothing is there.

    `Path.exists` says since Python 3.14 that nothing is there where it could not look.
    """
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        return None
