"""Fields that several import types have, each in a table of its own."""

from workflows.shared.fields import ColumnKind
from workflows.spreadsheets.fields import SheetField


def bib(table: str) -> SheetField:
    """The number on a participant's shirt."""
    return SheetField(
        "BIB",
        "Bib",
        f"{table}.bib",
        ColumnKind.CODE,
        aliases=(
            *("bib number", "bib no", "start number", "race number", "start no"),
            *("Startnummer", "Startnr.", "Start-Nr.", "StNr"),
        ),
        examples=("1042",),
    )


def category(table: str, resolver: str, *, creates: bool = False) -> SheetField:
    """An event's category."""
    return SheetField(
        "EVENT_CATEGORY_NAME",
        "Category",
        f"{table}.category_id",
        ColumnKind.ENTITY,
        aliases=(
            *("event category", "category name", "age group", "age category", "division"),
            *("competition class", "Kategorie", "Altersklasse", "AK", "Wertungsklasse"),
            *("Wettkampfklasse", "Startklasse"),
        ),
        examples=("Junior (U18)", "Senior"),
        resolver=resolver,
        creates=creates,
    )


def notes(table: str) -> SheetField:
    """Further remarks."""
    return SheetField(
        "NOTES",
        "Notes",
        f"{table}.notes",
        aliases=(
            *("note", "comment", "comments", "remark", "remarks", "Bemerkung", "Bemerkungen"),
            *("Notiz", "Notizen", "Kommentar", "Anmerkung", "Anmerkungen"),
        ),
        examples=("Arrives late",),
        max_length=2_000,
    )
