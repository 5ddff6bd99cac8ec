"""Memberships of a membership period."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.types.base import ContextSpec, Fault, SheetRows, SheetType
from activities.spreadsheets.types.people import (
    PERSON_FIELDS,
    PERSONS,
    arrange_person,
    check_person,
    of_person,
    person_keys,
)
from activities.spreadsheets.types.shared import notes
from workflows.shared.fields import ColumnKind, FieldSpec

_TABLE: Final = "memberships"

_JOINED: Final = FieldSpec(
    "JOINED_ON",
    ColumnKind.DATE,
    title="Joined on",
    target=f"{_TABLE}.joined_on",
    aliases=(
        *("joined", "join date", "date joined", "entry date", "member since", "start date"),
        *("Eintritt", "Eintrittsdatum", "eingetreten am", "Mitglied seit", "Beitrittsdatum"),
    ),
    examples=("2024-01-01",),
    part="first",
)
_LEFT: Final = FieldSpec(
    "LEFT_ON",
    ColumnKind.DATE,
    title="Left on",
    target=f"{_TABLE}.left_on",
    aliases=(
        *("left", "leaving date", "date left", "exit date", "end date", "member until"),
        *("Austritt", "Austrittsdatum", "ausgetreten am", "Mitglied bis"),
    ),
    examples=("2026-12-31",),
    part="last",
)

_NO_FEE: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(
        (
            *("free", "exempt", "waived", "no charge", "complimentary", "gratis"),
            *("frei", "beitragsfrei", "befreit", "kostenlos"),
        ),
        "0",
    )
)


def _check(rows: SheetRows, context: ImportContext) -> Iterator[Fault]:
    yield from check_person(rows, context)
    for row, (joined, left) in enumerate(zip(rows[_JOINED.name], rows[_LEFT.name], strict=True)):
        if joined is not None and left is not None and left < joined:
            yield Fault(row, _LEFT.name, f"is before {_JOINED.title} {joined.isoformat()}")


TYPE: Final = SheetType(
    name="MEMBERSHIP",
    title="Memberships",
    context=ContextSpec("membership_periods", "Membership period"),
    fields=(
        *PERSON_FIELDS,
        FieldSpec(
            "MEMBERSHIP_TYPE_ID",
            ColumnKind.ENTITY,
            title="Membership type",
            target=f"{_TABLE}.membership_type_id",
            required=True,
            aliases=(
                *("membership", "member type", "type of membership", "membership category"),
                *("Mitgliedschaft", "Mitgliedsart", "Mitgliedstyp", "Beitragsgruppe"),
                *(
                    "Art",
                    "Beitragsart",
                    "Art der Mitgliedschaft",
                    "Mitgliedschaftsart",
                    "Beitragsklasse",
                ),
            ),
            examples=("Adult", "Family"),
            resolver="membership_types",
            creates=True,
        ),
        FieldSpec(
            "MEMBER_NO",
            ColumnKind.CODE,
            title="Member no.",
            target=f"{_TABLE}.member_no",
            aliases=(
                *("member number", "membership number", "membership no", "member id"),
                *("Mitgliedsnummer", "Mitgliedsnr.", "Mitglieds-Nr.", "MgNr"),
            ),
            examples=("M-00417",),
        ),
        _JOINED,
        _LEFT,
        FieldSpec(
            "FEE",
            ColumnKind.DECIMAL,
            title="Fee",
            target=f"{_TABLE}.fee",
            aliases=(
                *("membership fee", "annual fee", "dues", "amount"),
                *("Beitrag", "Jahresbeitrag", "Mitgliedsbeitrag"),
            ),
            examples=("120.00",),
            minimum=0,
            words=_NO_FEE,
        ),
        notes(_TABLE),
    ),
    targets=(PERSONS, of_person(_TABLE, "membership_period_id")),
    main=_TABLE,
    keys=person_keys,
    check=_check,
    arrange=arrange_person,
)
