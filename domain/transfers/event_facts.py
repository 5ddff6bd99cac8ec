"""Which file and which account an event is about."""

from typing import Final

from contracts.transfers import FileNotice

ACCOUNT: Final = "accountId"
FILE_FIELDS: Final = ("fileName", "filename", "name", "path", "url")
"""Of the data: where the name of the file is looked for."""
_FAIRNESS_BYTES: Final = 64
"""Temporal takes no longer fairness keys."""


def file_of(event: FileNotice) -> str | None:
    """The file that an event is about, as far as it says; its name alone."""
    for field in FILE_FIELDS:
        value = event.data.get(field)
        if isinstance(value, str) and value:
            return value.replace("\\", "/").rstrip("/").rpartition("/")[2][:255] or None
    return None


def fairness_of(account_id: str) -> str:
    """The fairness key of an account: a busy one does not hold the others up."""
    return account_id.encode()[:_FAIRNESS_BYTES].decode(errors="ignore")
