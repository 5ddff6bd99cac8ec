"""Registrations for an event."""

from typing import Final

from activities.spreadsheets.types.base import ContextSpec, SheetType
from activities.spreadsheets.types.people import (
    PERSON_FIELDS,
    PERSONS,
    arrange_person,
    check_person,
    of_person,
    person_keys,
)
from activities.spreadsheets.types.shared import bib, category, notes
from workflows.shared.fields import ColumnKind, FieldSpec

_TABLE: Final = "event_participants"

TYPE: Final = SheetType(
    name="EVENT_PARTICIPANT",
    title="Event participants",
    context=ContextSpec("events", "Event"),
    fields=(
        *PERSON_FIELDS,
        category(_TABLE, "event_categories", creates=True),
        bib(_TABLE),
        FieldSpec(
            "TEAM",
            title="Team",
            target=f"{_TABLE}.team",
            aliases=("team name", "squad", "Mannschaft", "Teamname", "Mannschaftsname"),
            examples=("Laufgruppe Nord",),
        ),
        FieldSpec(
            "REGISTERED_ON",
            ColumnKind.DATE,
            title="Registered on",
            target=f"{_TABLE}.registered_on",
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
