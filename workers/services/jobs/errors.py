"""Refusals that only jobs know."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.services.errors import Refused


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one field of a request; never its value."""

    location: str
    """Names joined by dots, as in `parameters.tile_size`."""
    message: str


class InvalidJob(Refused):
    """Fields of a request are wrong; nothing was started.

    Attributes:
        errors: Each of them.
    """

    kind = "invalid-job"
    title = "The job cannot be started as it is asked for"

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("; ".join(f"{each.location}: {each.message}" for each in errors[:5]))
        self.errors = tuple(errors)
