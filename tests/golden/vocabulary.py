"""Titles and values of the generated tables, as people and programs write them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

Make = Callable[[Random, int], Any]
"""The value of a row by its number."""


@dataclass(frozen=True)
class Column:
    """A column of a type.

    Attributes:
        titles: What its header may be.
        make: Its values.
        needed: Whether each file of the type has it.
    """

    titles: Sequence[str]
    make: Make
    needed: bool = False


def _one_of(*values: Any) -> Make:
    return lambda random, row: random.choice(values)


def _code(stem: str, width: int = 3) -> Make:
    return lambda random, row: f"{stem}{row:0{width}}"


def _amount(most: int, places: int = 2) -> Make:
    return lambda random, row: Decimal(random.randint(0, most * 10**places)).scaleb(-places)


def _whole(most: int) -> Make:
    return lambda random, row: random.randint(0, most)


def _day(first: int, last: int) -> Make:
    begin = date(first, 1, 1)
    days = (date(last, 12, 31) - begin).days
    return lambda random, row: begin + timedelta(random.randint(0, days))


_TEXT = Column(
    ("Description", "Bezeichnung", "Beschreibung"),
    _one_of(
        "Crane 50 t", "Pumpe, groß", 'Valve 3/4"', "Total station", "Seite 2 links", "\u2013", ""
    ),
)
_NAME = Column(("Name", "Full name"), _one_of("North", "Süd", "Night shift", "A=B", ""))
_UNIT = Column(("Unit", "UoM", "Einheit"), _one_of("m", "pcs", "Stk", "m²", ""))

IMPORTS: Final[Mapping[str, Sequence[Column]]] = {
    "equipment": (
        Column(("Code", "Equipment No", "Gerätenummer", "Asset no"), _code("E-"), needed=True),
        _TEXT,
        Column(("Category", "Gruppe"), _one_of("Crane", "Loader", "Bagger")),
        Column(("Serial", "S/N"), lambda random, row: f"{row:05}"),
        Column(("Ownership", "Besitz"), _one_of("owned", "rental", "Miete", "borrowed", "o")),
        Column(("Rate", "Day rate", "Mietsatz"), _amount(900)),
        Column(("Status", "Zustand"), _one_of("ok", "in repair", "")),
    ),
    "material": (
        Column(("Material code", "Artikelnummer", "SKU"), _code("00", 4), needed=True),
        _TEXT,
        _UNIT,
        Column(("Price", "Unit price", "Einzelpreis"), _amount(5_000)),
        Column(("Currency", "Währung"), _one_of("EUR", "USD", "CHF")),
        Column(("Lead time", "Lieferzeit (Tage)"), _whole(90)),
    ),
    "crew_trade": (
        Column(("Trade code", "Gewerk"), _code("T"), needed=True),
        _NAME,
        Column(("Straight rate", "Normalstunde"), _amount(80)),
        Column(("Overtime", "Überstunde"), _amount(120)),
        Column(("Burden", "Lohnnebenkosten"), _amount(30)),
    ),
    "crew": (
        Column(("Crew", "Kolonne"), _code("C-", 2), needed=True),
        _NAME,
        Column(("Foreman", "Polier"), _one_of("Ö. Y\u0131ld\u0131z", "Meyer", "=cmd()", "")),
        Column(("Shift", "Schicht"), _one_of("day", "night", "Tag")),
        Column(("Output per hour", "Leistung/h"), _amount(40, 3)),
    ),
    "crew_member": (
        Column(("Employee no", "Personalnummer", "Badge"), _code("", 5), needed=True),
        Column(("Valid from", "Gültig ab", "Start"), _day(2024, 2025), needed=True),
        _NAME,
        Column(("Crew", "Kolonne"), _one_of("C-01", "C-02")),
        Column(("Trade", "Gewerk"), _one_of("T001", "T002", "")),
        Column(("Valid to", "Bis", "End date"), _day(2025, 2026)),
    ),
    "mto": (
        Column(("Drawing", "Isometric", "Zeichnung"), _one_of("ISO-1", "ISO-2"), needed=True),
        Column(("Commodity code", "Ident", "Materialnummer"), _code("P"), needed=True),
        Column(("Size", "DN", "Nennweite"), _one_of('1"', "2 1/2", "DN50", 100, "")),
        Column(("Quantity", "Qty", "Menge"), _amount(60, 3), needed=True),
        _UNIT,
        _TEXT,
        Column(("Revision", "Rev"), _one_of("0", "A", "B")),
    ),
    "estimation_master": (
        Column(("Item", "Item code", "Position"), lambda random, row: f"1.{row}", needed=True),
        _TEXT,
        _UNIT,
        Column(("Quantity", "Menge"), _amount(400), needed=True),
        Column(("Unit rate", "Einheitspreis", "EP"), _amount(250)),
        Column(("Man hours", "Stunden"), _amount(90, 1)),
        Column(("Markup %", "Zuschlag"), _one_of("12%", "7,5 %", 5, "")),
    ),
}

_FIRST = ("Anna", "Jörg", "María José", "Zoë", "Per-Åke", "anna", "TOM", "Li")
_LAST = ("Schmidt", "O'Neill", "von der Heide", "Çelik", "Total", "Ng", "MÜLLER", "Sørensen")
_PERSON: Final = (
    Column(("First name", "Vorname", "Given name"), _one_of(*_FIRST), needed=True),
    Column(("Last name", "Nachname", "Surname"), _one_of(*_LAST), needed=True),
    Column(
        ("Email", "E-Mail"),
        lambda random, row: random.choice((f"p{row}@example.org", "no mail", "")),
    ),
    Column(("Date of birth", "Geburtsdatum", "DOB"), _day(1950, 2015)),
    Column(("Gender", "Geschlecht", "m/w"), _one_of("m", "w", "female", "divers", "")),
    Column(("Phone", "Telefon"), _one_of("+49 30 901820", "0171/123456", "")),
    Column(("Postcode", "PLZ"), _one_of("01067", "10115", 4051, "SW1A 1AA")),
    Column(("City", "Ort"), _one_of("Dresden", "Köln", "Bâle")),
    Column(("Country", "Land", "Nation"), _one_of("Germany", "DE", "Schweiz", "GBR", "Utopia")),
    Column(("Club", "Verein"), _one_of("SC Nord", "n/a", "")),
)
_CATEGORY = Column(
    ("Category", "Altersklasse", "AK"), _one_of("Junior", "Senior (18+)", "Masters", "Elite")
)

SPREADSHEETS: Final[Mapping[str, Sequence[Column]]] = {
    "EVENT_PARTICIPANT": (
        *_PERSON,
        _CATEGORY,
        Column(("Bib", "Startnummer"), _whole(30)),
        Column(("Registered on", "Anmeldedatum"), _day(2024, 2025)),
        Column(("T-shirt",), _one_of("S", "M", "XXL", "")),
        Column(("Notes", "Bemerkung"), _one_of("late", "=1+1", "")),
    ),
    "MEMBERSHIP": (
        *_PERSON,
        Column(
            ("Membership type", "Mitgliedsart"),
            _one_of("Erwachsene", "erwachsen", "Familie", "Honorary"),
            needed=True,
        ),
        Column(("Member no.", "MgNr"), _code("M-", 4)),
        Column(("Joined on", "Eintritt"), _day(1990, 2024)),
        Column(("Left on", "Austritt"), _day(2020, 2025)),
        Column(("Fee", "Beitrag"), _one_of(Decimal("120.00"), Decimal("45.5"), "frei", "")),
    ),
    "RESULT": (
        *_PERSON,
        Column(("Bib", "StNr"), _whole(30)),
        Column(
            ("Finish time", "Nettozeit", "Zeit"),
            _one_of("01:23:45", "45:10", "1:02:03,5", "DNF", "3.45", "", "0.0569"),
            needed=True,
        ),
        Column(("Rank", "Platz"), _one_of("1", "=3", "12.", "DNS", "", 7)),
        Column(("Status", "Wertung"), _one_of("finished", "DNF", "a.W.", "lost", "")),
    ),
}

ODD: Final = (
    *(
        "#N/A",
        "n/a",
        "-",
        "tbd",
        "1.234,50",
        "1,234.50",
        "1 234,5",
        "(5)",
        "€ 3.50",
        "12%",
        "1E+05",
    ),
    *(
        "31.02.2024",
        "04/05/2024",
        "2024-13-01",
        "45123",
        "TRUE",
        "0012",
        "007",
        "dto.",
        '"',
        "####",
    ),
    *(
        "=1+1",
        "+49",
        "@x",
        " padded ",
        "a\u00a0b",
        "zero\u200bwidth",
        "Ã¼ber",
        "two\nlines",
        "Total",
    ),
    *("Summe", "Page 1 of 2", "x" * 300, "\u0001", "ﬁn", "e\u0301", "½", "10 m", "~5", "5-7"),
)
"""Cells that stand where nobody expects them."""
