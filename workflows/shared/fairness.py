"""Who takes turns with whom: work of one owner does not hold that of another up."""

from typing import Final

_BYTES: Final = 64
"""Temporal takes no longer fairness keys."""


def fairness_key(organisation_id: int | None, otherwise: str) -> str:
    """The fairness key of a run; what it starts inherits the key.

    Args:
        organisation_id: Organisation that the run belongs to: all of its runs share one turn.
        otherwise: What takes turns where it belongs to none: its project or account.
    """
    if organisation_id is not None:
        return f"organisation/{organisation_id}"
    return otherwise.encode()[:_BYTES].decode(errors="ignore")
