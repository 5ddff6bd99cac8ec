"""Where a transfer stands, as a part of a sentence."""

from types import MappingProxyType
from typing import Final

from contracts.transfers import TransferStatus

_S = TransferStatus

_STANDS: Final = MappingProxyType(
    {
        _S.INVALID: "is invalid: its message is no event",
        _S.GARBAGE: "is refused: its event lacks a field",
        _S.READ_MESSAGE: "has not ended: its actions are under way",
        _S.ASSIGNED: "has not ended: its job is about to begin",
        _S.NO_ASSIGNED: "waits for a queue: no rule matches it",
        _S.SUCCEEDED: "has succeeded",
        _S.FAILED: "has failed",
    }
)


def standing(status: TransferStatus) -> str:
    """What follows "the transfer": `has succeeded`, `waits for a queue`."""
    return _STANDS[status]
