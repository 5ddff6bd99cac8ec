"""The run that warns of partners' keys before they expire, and its step."""

from datetime import datetime
from typing import Final

from pydantic import Field

from contracts.base import Contract
from contracts.transfers.names import PartnerName, Sentence

WARNINGS: Final = 20
"""Keys that one step warns of."""


class KeyWarningsOrder(Contract):
    """Input of the run that notifies people of keys that expire, and of its step."""

    notices: bool = True
    skip: int = Field(default=0, ge=0)
    """Keys that the run has sent notices about."""


class KeyWarning(Contract):
    """A key that expires, or has."""

    partner: PartnerName
    key: str = Field(max_length=100)
    """Fingerprint, with what kind of key it is."""
    ends: datetime
    step: int
    """30, 14 or 7 days before; 0: it has expired."""
    sentence: Sentence


class KeyWarnings(Contract):
    """Result of `transfers.expiring_keys`: the next of them."""

    warnings: tuple[KeyWarning, ...] = Field(default=(), max_length=WARNINGS)
    """None: there are no more."""


class KeysTold(Contract):
    """Result of a run that notifies people of keys that expire."""

    keys: int
