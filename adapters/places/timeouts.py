"""How long partners may keep silent."""

from dataclasses import dataclass
from typing import Final

LOGIN_SECONDS: Final = 20.0
ANSWER_SECONDS: Final = 60.0
"""A request that has no answer for so long means that the partner is unavailable."""
KEEPALIVE_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Timeouts:
    """How long a server may keep silent; seconds."""

    login: float = LOGIN_SECONDS
    answer: float = ANSWER_SECONDS
    keepalive: float = KEEPALIVE_SECONDS
