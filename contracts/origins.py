"""The message that a run was started by: where it came from, and what distinguishes it."""

import hashlib
import json
from typing import Annotated, Final

from pydantic import Field

from contracts.base import Contract

MEMO: Final = "digest"
"""Entry of a run's memo: the digest of the message that has the run's key."""


Digest = Annotated[str, Field(max_length=64)]
"""See `digest_of`."""


class Origin(Contract):
    """What is known of the message that started a run, beside its content."""

    queue: str
    message_id: str | None = None
    """As its sender, or the queue, set it."""
    digest: Digest
    """Kept in rows longer than Temporal keeps the run."""


def digest_of(message: Contract) -> str:
    """The same for two bodies that mean the same.

    Neither the order of fields nor white space counts, nor whether a default is spelled out; a
    field that a later release adds with a default leaves the digest as it is.
    """
    content = message.model_dump(mode="json", exclude_defaults=True)
    # Older releases dropped fields that they did not know.
    content.pop("unknown_fields", None)
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def body_of(message: Contract) -> bytes:
    """A body that means a message: what is recorded of one that is refused after its start."""
    return message.model_dump_json(by_alias=True).encode()
