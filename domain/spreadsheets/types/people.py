"""What import types whose rows are people have in common."""

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final

from domain.spreadsheets.entities import ImportContext
from domain.spreadsheets.types.base import (
    CellKind,
    Fault,
    SheetField,
    SheetRows,
    Target,
    context_ids,
    organisation,
)
from domain.tabular.fields import normalise

FIRST_NAME: Final = SheetField(
    "FIRST_NAME",
    "First name",
    "persons.first_name",
    required=True,
    aliases=(
        *("given name", "forename", "christian name", "fname", "first", "participant first name"),
        *("Vorname", "Vornamen", "Rufname", "Vorname Teilnehmer"),
    ),
    examples=("Anna", "Jean-Luc"),
)
LAST_NAME: Final = SheetField(
    "LAST_NAME",
    "Last name",
    "persons.last_name",
    required=True,
    aliases=(
        *("surname", "family name", "lname", "last", "participant last name"),
        *("Nachname", "Familienname", "Zuname", "Nachname Teilnehmer"),
    ),
    beside=MappingProxyType({"Name": "FIRST_NAME"}),
    examples=("Schmidt", "O'Neill"),
)
EMAIL: Final = SheetField(
    "EMAIL",
    "Email",
    "persons.email",
    CellKind.MAIL,
    aliases=(
        *("e-mail address", "mail", "mail address", "email id", "contact email"),
        *("E-Mail-Adresse", "Mailadresse", "elektronische Post"),
    ),
    examples=("anna.schmidt@example.org",),
)
BIRTHDATE: Final = SheetField(
    "BIRTHDATE",
    "Date of birth",
    "persons.birthdate",
    CellKind.DATE,
    aliases=(
        *("dob", "birthday", "birth day", "born", "born on", "date birth"),
        *("Geburtsdatum", "Geb.-Datum", "Geburtstag", "geboren", "geboren am", "geb.", "geb. am"),
    ),
    examples=("1990-05-31", "31.05.1990"),
)
GENDER: Final = SheetField(
    "GENDER",
    "Gender",
    "persons.gender",
    CellKind.CHOICE,
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
PHONE: Final = SheetField(
    "PHONE",
    "Phone",
    "persons.phone",
    CellKind.CODE,
    aliases=(
        *("phone number", "telephone", "telephone number", "mobile", "mobile phone", "cell"),
        *("cell phone", "tel", "Telefon", "Telefonnummer", "Tel.-Nr.", "Handy", "Handynummer"),
        *("Mobil", "Mobilnummer", "Mobiltelefon", "Rufnummer"),
    ),
    examples=("+49 30 901820",),
)
STREET: Final = SheetField(
    "STREET",
    "Street",
    "persons.street",
    aliases=(
        *("address", "street address", "address line 1", "street and number"),
        *("Straße", "Strasse", "Str.", "Straße Nr.", "Straße und Hausnummer", "Anschrift"),
        "Adresse",
    ),
    examples=("Hauptstraße 12",),
)
POSTCODE: Final = SheetField(
    "POSTCODE",
    "Postcode",
    "persons.postcode",
    CellKind.CODE,
    aliases=("post code", "postal code", "zip", "zip code", "PLZ", "Postleitzahl"),
    examples=("10115", "SW1A 1AA"),
)
CITY: Final = SheetField(
    "CITY",
    "City",
    "persons.city",
    aliases=("town", "place of residence", "Ort", "Stadt", "Wohnort"),
    examples=("Berlin",),
)
COUNTRY: Final = SheetField(
    "ID_COUNTRY",
    "Country",
    "persons.country_id",
    CellKind.ENTITY,
    aliases=(
        *("nation", "nationality", "country code", "country of residence", "nat", "noc", "ioc"),
        *("Land", "Staat", "Ländercode", "Länderkürzel", "Nationalität", "Staatsangehörigkeit"),
    ),
    examples=("Germany", "DE", "GER", "Deutschland"),
    resolver="countries",
)
CLUB: Final = SheetField(
    "CLUB",
    "Club",
    "persons.club",
    aliases=("club name", "association", "Verein", "Vereinsname", "Sportverein", "Klub"),
    examples=("SC Charlottenburg",),
)

PERSON_FIELDS: Final = (
    *(FIRST_NAME, LAST_NAME, EMAIL, BIRTHDATE, GENDER, PHONE),
    *(STREET, POSTCODE, CITY, COUNTRY, CLUB),
)


def person_keys(rows: SheetRows) -> Sequence[str]:
    """What makes two people of one organisation the same: their mail address, or else their
    name and date of birth."""
    mails: Sequence[str | None] = rows[EMAIL.name]
    if all(mails):
        return [f"email:{mail.lower()}" for mail in mails if mail]
    last, first = (_plain(rows[each.name]) for each in (LAST_NAME, FIRST_NAME))
    born: Sequence[Any] = rows[BIRTHDATE.name]
    return [
        f"email:{mail.lower()}" if mail else f"name:{surname}|{name}|{day or ''}"
        for mail, surname, name, day in zip(mails, last, first, born, strict=True)
    ]


def _plain(names: Sequence[str | None]) -> Sequence[str]:
    distinct = dict.fromkeys(names)
    plain = {name: normalise(name or "") or (name or "").casefold() for name in distinct}
    return [plain[name] for name in names]


def made_keys(rows: SheetRows, context: ImportContext) -> Sequence[str]:
    """`person_keys` as a column of the table."""
    return person_keys(rows)


PERSONS: Final = Target(
    "persons",
    ("organisation_id", "person_key"),
    made=MappingProxyType({"organisation_id": organisation, "person_key": made_keys}),
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
