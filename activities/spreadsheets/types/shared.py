"""Fields that several import types have, each in a table of its own."""

from workflows.shared.fields import ColumnKind, FieldSpec


def bib(table: str) -> FieldSpec:
    """The number on a participant's shirt."""
    return FieldSpec(
        "BIB",
        ColumnKind.CODE,
        title="Bib",
        target=f"{table}.bib",
        aliases=(
            *("bib number", "bib no", "start number", "race number", "start no"),
            *("Startnummer", "Startnr.", "Start-Nr.", "StNr"),
        ),
        examples=("1042",),
    )


def category(table: str, resolver: str, *, creates: bool = False) -> FieldSpec:
    """An event's category."""
    return FieldSpec(
        "EVENT_CATEGORY_NAME",
        ColumnKind.ENTITY,
        title="Category",
        target=f"{table}.category_id",
        aliases=(
            *("event category", "category name", "age group", "age category", "division"),
            *("competition class", "Kategorie", "Altersklasse", "AK", "Wertungsklasse"),
            *("Wettkampfklasse", "Startklasse"),
        ),
        examples=("Junior (U18)", "Senior"),
        resolver=resolver,
        creates=creates,
    )


def notes(table: str) -> FieldSpec:
    """Further remarks."""
    return FieldSpec(
        "NOTES",
        title="Notes",
        target=f"{table}.notes",
        aliases=(
            *("note", "comment", "comments", "remark", "remarks", "Bemerkung", "Bemerkungen"),
            *("Notiz", "Notizen", "Kommentar", "Anmerkung", "Anmerkungen"),
        ),
        examples=("Arrives late",),
        max_length=2_000,
    )
