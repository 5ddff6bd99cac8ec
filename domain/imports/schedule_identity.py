"""Which schedule of a project a file is about, when its short name is not known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

SAME_SHARE: Final = 0.8
"""A file whose activities stand in a schedule to this share may be an update of it."""
CHOICES: Final = 3
"""Schedules that a person is asked about; a new one is the fourth answer."""


@dataclass(frozen=True, slots=True)
class Resemblance:
    """A schedule that holds most activities of a file."""

    schedule_id: str
    share: float
    """Of the file's task codes, 0 to 1."""


def resembling(held: Mapping[str, int], total: int) -> list[Resemblance]:
    """Schedules that a file may be an update of, the most similar first.

    Args:
        held: How many of the file's task codes each schedule holds.
        total: How many the file has.
    """
    shares = [Resemblance(id, count / total) for id, count in held.items() if total]
    alike = [each for each in shares if each.share >= SAME_SHARE]
    return sorted(alike, key=lambda each: (-each.share, each.schedule_id))[:CHOICES]
