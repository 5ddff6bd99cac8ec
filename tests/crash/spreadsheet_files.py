"""Spreadsheets for imports that are disturbed, each with people that no other one names."""

import csv
import io
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workflows.spreadsheets.people import identity_of
from workflows.spreadsheets.runs import workflow_id

ROWS = 8_000
"""Two chunks; of the rows that wait two as well."""
KNOWN = ("Junior (U18)", "Senior (18+)", "Masters (40+)")
"""Categories of every event."""
CHOSEN, CREATED, IGNORED = "Elite", "Kids", "Nobody"
"""Values of the file that no category has: one means `SENIOR`, one is created, one left out."""
SENIOR = KNOWN[1]
_COUNTRIES = {"Switzerland": 756, "Netherlands": 528}
_SPELLINGS = 2_500
"""Distinct spellings of the two: their meanings are saved in three transactions."""
_SHIRTS = ("S", "M", "L", "")
_NAMESPACE = uuid.UUID("1f0cfa53-5b31-4f6b-9a6c-7a3b6f1f6f10")


@dataclass(frozen=True)
class ExistingPerson:
    """A person of the club, and what they have to do with the event, before a file comes."""

    person: Mapping[str, Any]
    category: str | None
    """None: they do not take part yet."""
    bib: str | None
    shirt: str | None


@dataclass(frozen=True)
class Sheet:
    """A table of participants.

    Attributes:
        name: Also the domain of its people's mail addresses.
        event_id: An event of its own, so that its categories are its own too.
        maps_first: Values are mapped before any row; else rows are started at once, and those
            with unknown values wait.
    """

    name: str
    event_id: int
    maps_first: bool

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(_NAMESPACE, self.name))

    @property
    def run(self) -> str:
        """Id of its workflow."""
        return workflow_id(self.uuid)

    def category_id(self, name: str) -> int:
        """Key of one of its event's categories."""
        return self.event_id * len(KNOWN) + KNOWN.index(name)

    @property
    def header(self) -> Sequence[str]:
        # What one import is told about its columns, the next of the same headers remembers.
        group = f"Zz {self.name}"
        return ("First name", "Last name", "Email", "City", "Country", "T-shirt", group, "Bib")

    def content(self) -> bytes:
        """The file."""
        text = io.StringIO()
        writer = csv.writer(text)
        writer.writerow(self.header)
        writer.writerows(self._row(n) for n in range(ROWS))
        return text.getvalue().encode()

    def _row(self, n: int) -> tuple[object, ...]:
        # One row in fifty repeats the person of the row before; one in six has no mail address.
        person = n - 1 if n % 50 == 49 else n
        mail = "to be asked for" if n % 6 == 4 else self._mail(person)
        return (
            *(f"First {person}", f"Last {person}", mail, f"City {n % 50}", _country(n)),
            *(_SHIRTS[n % len(_SHIRTS)], self._group(n), n),
        )

    def _group(self, n: int) -> str:
        if n % 4 == 0:
            return KNOWN[n % len(KNOWN)]
        return f"{CREATED if n % 7 == 0 else IGNORED if n % 11 == 0 else CHOSEN} {self.name}"

    def earlier(self) -> Iterator[ExistingPerson]:
        """Who is there before the file: of twelve, one row is there already, three change."""
        for n in range(0, ROWS, 3):
            mail, is_same = self._mail(n), n % 12 == 0
            who = identity_of(f"Last {n}", f"First {n}", mail, None)
            assert who is not None
            yield ExistingPerson(
                person={
                    "person_key": f"email:{mail}",
                    "name_key": who.name_key,
                    "mail_key": who.mail_key,
                    "email": mail,
                    "first_name": f"First {n}",
                    "last_name": f"Last {n}",
                    "city": f"City {n % 50}" if is_same else "Elsewhere",
                    "country_id": _COUNTRIES[_country(n).title()] if is_same else None,
                },
                # The others are known to the club, and new to the event.
                category=KNOWN[0] if n % 6 == 0 else None,
                bib=str(n) if is_same else None,
                shirt=_SHIRTS[0] if is_same else None,
            )

    def _mail(self, n: int) -> str:
        return f"person{n:05}@{self.name}.example.org"


def _country(n: int) -> str:
    """A country in one of its ways to use capitals."""
    name = list(_COUNTRIES)[n % len(_COUNTRIES)]
    bits = n % _SPELLINGS // len(_COUNTRIES)
    return "".join(
        letter.upper() if bits >> place & 1 else letter.lower() for place, letter in enumerate(name)
    )
