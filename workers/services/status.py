"""What `docflow status` shows of a pipeline beyond what is counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class Check:
    """One part of the installation."""

    part: str
    up: bool
    says: str


@dataclass(frozen=True)
class ParkedRun:
    """A run that waits for an operator's answer."""

    pipeline: str
    id: str
    """How people name it."""
    type: str
    since: datetime
    reason: str | None = None
    """None: only its worker knows."""
    row: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else programs are given."""
