"""Registrations for an event."""

from typing import Final

from domain.spreadsheets.types.base import ColumnKind, ContextSpec, SheetField, SheetType
from domain.spreadsheets.types.people import (
    PERSON_FIELDS,
    PERSONS,
    arrange_person,
    check_person,
    of_person,
    person_keys,
)
from domain.spreadsheets.types.shared import bib, category, notes

_TABLE: Final = "event_participants"

TYPE: Final = SheetType(
    name="EVENT_PARTICIPANT",
    title="Event participants",
    context=ContextSpec("events", "Event"),
    fields=(
        *PERSON_FIELDS,
        category(_TABLE, "event_categories", creates=True),
        bib(_TABLE),
        SheetField(
            "TEAM",
            "Team",
            f"{_TABLE}.team",
            aliases=("team name", "squad", "Mannschaft", "Teamname", "Mannschaftsname"),
            examples=("Laufgruppe Nord",),
        ),
        SheetField(
            "REGISTERED_ON",
            "Registered on",
            f"{_TABLE}.registered_on",
            ColumnKind.DATE,
            aliases=(
                *("registered", "registration date", "date of registration", "signup date"),
                *("Anmeldedatum", "angemeldet am", "Datum der Anmeldung", "Meldedatum"),
            ),
            examples=("2026-01-03",),
            part="first",
        ),
        notes(_TABLE),
    ),
    targets=(PERSONS, of_person(_TABLE, "event_id")),
    main=_TABLE,
    keys=person_keys,
    check=check_person,
    arrange=arrange_person,
    custom_lists=_TABLE,
)
