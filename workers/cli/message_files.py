"""Message files that a person corrected."""

from pathlib import Path

from contracts.imports import MESSAGE_BYTES
from workers.cli.errors import UsageError


def read_body(file: Path) -> bytes:
    """The bytes of a message file.

    Raises:
        UsageError: It cannot be read, or is larger than a message may be.
    """
    try:
        with file.open("rb") as opened:
            body = opened.read(MESSAGE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    if len(body) > MESSAGE_BYTES:
        raise UsageError(
            f"{file} is over {MESSAGE_BYTES // 1024} KiB, more than a message may have"
        )
    return body
