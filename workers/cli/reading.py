"""Message files that a person corrected."""

from pathlib import Path

from workers.cli.errors import UsageError

LARGEST_MESSAGE = 256 * 1024
"""Bytes that a queue message may have."""


def read_body(file: Path) -> bytes:
    """The bytes of a message file.

    Raises:
        UsageError: It cannot be read, or is no message by its size.
    """
    try:
        with file.open("rb") as opened:
            body = opened.read(LARGEST_MESSAGE + 1)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    if len(body) > LARGEST_MESSAGE:
        raise UsageError(f"{file} is over {LARGEST_MESSAGE // 1024} KiB: that is no message")
    return body
