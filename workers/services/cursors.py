"""Where a page of a list ends that shows the newest change first."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Self

from pydantic import TypeAdapter

_MOMENT: Final[TypeAdapter[datetime]] = TypeAdapter(datetime)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last row of a page; the next page begins behind it.

    Many rows can have changed at one moment: those that were written together have done so.
    """

    at: datetime
    """When it changed, UTC."""
    id: str | None = None
    """None, as releases before had it: the next page has only what changed earlier."""

    def __str__(self) -> str:
        # An offset of `+00:00` would have to be quoted in an address.
        moment = self.at.astimezone(UTC).isoformat().replace("+00:00", "Z")
        return moment if self.id is None else f"{moment}_{self.id}"

    @classmethod
    def read(cls, text: str) -> Self:
        """A cursor from its text.

        Raises:
            ValueError: The text is none.
        """
        moment, _, id = text.partition("_")
        at = _MOMENT.validate_python(moment)
        try:
            at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        except OverflowError as error:
            raise ValueError(f"{moment} is, in UTC, beyond the years 1 to 9999") from error
        return cls(at, id or None)
