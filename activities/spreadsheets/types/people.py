"""What import types whose rows are people have in common."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from activities.spreadsheets.entities import ImportContext
from activities.spreadsheets.types.base import (
    Cells,
    Fault,
    SheetRows,
    Target,
    context_ids,
    organisation,
)
from workflows.shared.fields import ColumnKind, FieldSpec
from workflows.spreadsheets.names import given_and_family, stored_name
from workflows.spreadsheets.people import IDENTITY, PERSON, PERSONS_TABLE, Identity, identity_of

FIRST_NAME: Final = FieldSpec(
    "FIRST_NAME",
    title="First name",
    target="persons.first_name",
    required=True,
    either="LAST_NAME",
    aliases=(
        *("given name", "forename", "christian name", "fname", "first", "participant first name"),
        *("Vorname", "Vornamen", "Rufname", "Vorname Teilnehmer"),
    ),
    examples=("Anna", "Jean-Luc"),
)
LAST_NAME: Final = FieldSpec(
    "LAST_NAME",
    title="Last name",
    target="persons.last_name",
    required=True,
    either="FIRST_NAME",
    aliases=(
        *("surname", "family name", "lname", "last", "participant last name"),
        *("Nachname", "Familienname", "Zuname", "Nachname Teilnehmer"),
    ),
    beside=MappingProxyType({"Name": "FIRST_NAME"}),
    instead=(
        *("Name", "Full name", "Name, first name", "Last name, first name", "Surname, first name"),
        *("Athlete", "Athlete name", "Competitor", "Participant name", "Runner name"),
        *("Member name", "Nachname, Vorname", "Name, Vorname", "Name Vorname", "Vorname Name"),
        *("Vor- und Nachname", "Vor- und Zuname", "Vorname Nachname", "Nachname Vorname"),
        *("Athlet", "Teilnehmer", "Teilnehmername", "L\u00e4ufer", "Sportler", "Nom"),
    ),
    examples=("Schmidt", "O'Neill"),
)
EMAIL: Final = FieldSpec(
    "EMAIL",
    ColumnKind.MAIL,
    title="Email",
    target="persons.email",
    aliases=(
        *("e-mail address", "mail", "mail address", "email id", "contact email"),
        *("E-Mail-Adresse", "Mailadresse", "elektronische Post"),
    ),
    examples=("anna.schmidt@example.org",),
)
BIRTHDATE: Final = FieldSpec(
    "BIRTHDATE",
    ColumnKind.DATE,
    title="Date of birth",
    target="persons.birthdate",
    aliases=(
        *("dob", "birthday", "birth day", "born", "born on", "date birth"),
        *("Geburtsdatum", "Geb.-Datum", "Geburtstag", "geboren", "geboren am", "geb.", "geb. am"),
    ),
    examples=("1990-05-31", "31.05.1990"),
    past=True,
)
GENDER: Final = FieldSpec(
    "GENDER",
    ColumnKind.CHOICE,
    title="Gender",
    target="persons.gender",
    aliases=("sex", "m/f", "f/m", "m/w", "w/m", "m/w/d", "w/m/d", "Geschlecht"),
    examples=("female", "m", "divers"),
    choices=MappingProxyType(
        {
            "female": (
                "f",
                "fem",
                "woman",
                "women",
                "girl",
                "w",
                "weiblich",
                "Frau",
                "Damen",
                "Dame",
            ),
            "male": ("m", "man", "men", "boy", "männlich", "maennlich", "Mann", "Herr", "Herren"),
            "diverse": ("d", "x", "other", "non-binary", "nonbinary", "divers", "andere"),
        }
    ),
)
PHONE: Final = FieldSpec(
    "PHONE",
    ColumnKind.CODE,
    title="Phone",
    target="persons.phone",
    aliases=(
        *("phone number", "telephone", "telephone number", "mobile", "mobile phone", "cell"),
        *("cell phone", "tel", "Telefon", "Telefonnummer", "Tel.-Nr.", "Handy", "Handynummer"),
        *("Mobil", "Mobilnummer", "Mobiltelefon", "Rufnummer"),
    ),
    examples=("+49 30 901820",),
)
STREET: Final = FieldSpec(
    "STREET",
    title="Street",
    target="persons.street",
    aliases=(
        *("address", "street address", "address line 1", "street and number"),
        *("Straße", "Strasse", "Str.", "Straße Nr.", "Straße und Hausnummer", "Anschrift"),
        "Adresse",
    ),
    examples=("Hauptstraße 12",),
)
POSTCODE: Final = FieldSpec(
    "POSTCODE",
    ColumnKind.CODE,
    title="Postcode",
    target="persons.postcode",
    aliases=("post code", "postal code", "zip", "zip code", "PLZ", "Postleitzahl"),
    examples=("10115", "SW1A 1AA"),
)
CITY: Final = FieldSpec(
    "CITY",
    title="City",
    target="persons.city",
    aliases=("town", "place of residence", "Ort", "Stadt", "Wohnort"),
    examples=("Berlin",),
)
COUNTRY: Final = FieldSpec(
    "ID_COUNTRY",
    ColumnKind.ENTITY,
    title="Country",
    target="persons.country_id",
    aliases=(
        *("nation", "nationality", "country code", "country of residence", "nat", "noc", "ioc"),
        *("Land", "Staat", "Ländercode", "Länderkürzel", "Nationalität", "Staatsangehörigkeit"),
    ),
    examples=("Germany", "DE", "GER", "Deutschland"),
    resolver="countries",
)
CLUB: Final = FieldSpec(
    "CLUB",
    title="Club",
    target="persons.club",
    aliases=("club name", "association", "Verein", "Vereinsname", "Sportverein", "Klub"),
    examples=("SC Charlottenburg",),
)

PERSON_FIELDS: Final = (
    *(FIRST_NAME, LAST_NAME, EMAIL, BIRTHDATE, GENDER, PHONE),
    *(STREET, POSTCODE, CITY, COUNTRY, CLUB),
)
IDENTIFYING: Final = frozenset(field.name for field in (FIRST_NAME, LAST_NAME, EMAIL, BIRTHDATE))
"""Fields that distinguish people."""


def identities(rows: SheetRows) -> Sequence[Identity | None]:
    """Who each row is about; None: it names no one."""
    if IDENTITY in rows:
        return rows[IDENTITY]
    columns = (rows[each.name] for each in (LAST_NAME, FIRST_NAME, EMAIL, BIRTHDATE))
    return [identity_of(*who) for who in zip(*columns, strict=True)]


def person_keys(rows: SheetRows) -> Sequence[str]:
    """The person of each row: as the questions about people were settled, or else by name, mail
    address and date of birth together."""
    if PERSON.name in rows:
        return rows[PERSON.name]
    return [f"?{row}" if who is None else who.key for row, who in enumerate(identities(rows))]


def made_keys(rows: SheetRows, context: ImportContext) -> Sequence[str]:
    """`person_keys` as a column of the table."""
    return person_keys(rows)


def name_keys(rows: SheetRows, context: ImportContext) -> Sequence[str | None]:
    """What people are looked up by, beside their mail address."""
    return [None if who is None else who.name_key for who in identities(rows)]


def mail_keys(rows: SheetRows, context: ImportContext) -> Sequence[str | None]:
    """What people with a mail address are looked up by."""
    return [None if who is None else who.mail_key for who in identities(rows)]


PERSONS: Final = Target(
    PERSONS_TABLE,
    ("organisation_id", "person_key"),
    made=MappingProxyType(
        {
            "organisation_id": organisation,
            "person_key": made_keys,
            "name_key": name_keys,
            "mail_key": mail_keys,
        }
    ),
)


def of_person(table: str, context: str) -> Target:
    """What a person has once in an event, period or race.

    Args:
        table: Where it goes.
        context: Column of the event, period or race.
    """
    return Target(
        table,
        (context, "person_id"),
        made=MappingProxyType({context: context_ids}),
        references=MappingProxyType({"person_id": PERSONS.table}),
    )


def check_person(rows: SheetRows, context: ImportContext) -> Iterator[Fault]:
    """A birth date lies in the past."""
    for row, day in enumerate(rows[BIRTHDATE.name]):
        if day is not None and day > context.today:
            yield Fault(row, BIRTHDATE.name, "is in the future")


def arrange_person(cells: Cells, context: ImportContext) -> Cells:
    """Read the names of people as one list writes them.

    A list without a column of first names may write `Ferreira, Jo\u00e3o` in one column.
    """
    arranged = dict(cells)
    if LAST_NAME.name in cells and FIRST_NAME.name not in cells:
        both = list(map(given_and_family, cells[LAST_NAME.name]))
        arranged[LAST_NAME.name] = [family for _, family in both]
        if any(given is not None for given, _ in both):
            arranged[FIRST_NAME.name] = [given for given, _ in both]
    for name in (FIRST_NAME.name, LAST_NAME.name):
        if name in arranged:
            arranged[name] = list(map(stored_name, arranged[name]))
    return arranged
