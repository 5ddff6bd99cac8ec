"""Versions of what two people may change: who changes it says which one they have seen."""

import hashlib
from collections.abc import Collection

from pydantic import BaseModel

from workers.shared.services.errors import Conflict


def version_of(record: BaseModel) -> str:
    """The version of a record: another one whenever any of its fields is another."""
    return hashlib.sha256(record.model_dump_json().encode()).hexdigest()[:16]


def require_version(record: BaseModel, versions: Collection[str] | None) -> None:
    """Refuse a change that is based on another version.

    Args:
        record: As it is now.
        versions: Of which the caller has seen one; None: whichever there is may be changed.

    Raises:
        Conflict: It is none of them.
    """
    if versions is not None and version_of(record) not in versions:
        raise Conflict("it was changed meanwhile: read it again, and send the change again")
