"""The document types as data: what their files hold, and what makes a row the same row."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from workflows.imports.messages import (
    DocumentType,
    EstimationMasterMessage,
    MtoMessage,
    TableMessage,
)
from workflows.imports.runs import Handler, TypeFacts
from workflows.shared.fields import TEXT_CHARACTERS, ColumnKind, FieldSpec, amount, code, text

SECTION: Final = "section"
"""Part of a key that the headings above a row give, unless the file has a column for it."""
SEQUENCE: Final = "sequence"
"""Last part of a key whose other parts may come several times in one file."""


@dataclass(frozen=True)
class TableSpec:
    """One table type.

    Attributes:
        table: Table in the database.
        scope: Columns that the message fills, first part of the natural key; what `replace`
            may remove is bounded by them.
        key: Fields of the file that complete the natural key.
        fields: Every field of the file.
        row: What a person calls the key of a row.
        period: The fields of which the second must not be a day before the first.
        needed: A document fills this field in some row, unless its message says otherwise.
    """

    table: str
    scope: tuple[str, ...]
    key: tuple[str, ...]
    fields: tuple[FieldSpec, ...]
    row: str
    period: tuple[str, str] | None = None
    needed: str | None = None

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Columns that name a row."""
        return self.scope + self.key

    @property
    def numbered(self) -> bool:
        """Whether lines of the same key are distinguished by their order in the file."""
        return self.key[-1] == SEQUENCE

    @cached_property
    def by_name(self) -> Mapping[str, FieldSpec]:
        """Field by column name."""
        return {spec.name: spec for spec in self.fields}

    @cached_property
    def by_header(self) -> Mapping[str, FieldSpec]:
        """Field by every squashed header that means it."""
        return {header: spec for spec in self.fields for header in sorted(spec.headers)}


_PROJECT = ("project_id",)
_SERVICE = ("project_id", "service_id")

_DESCRIPTION = text(
    "description",
    *("desc", "descr", "item description", "long description"),
    *("beschreibung", "bezeichnung", "benennung", "kurztext", "langtext"),
    max_length=TEXT_CHARACTERS,
)
_UNIT = text(
    "unit",
    *("uom", "u/m", "unit of measure", "units", "einheit", "me", "mengeneinheit", "basiseinheit"),
    max_length=32,
)
_NAME = text("name", "title", "full name", "bezeichnung", "name und vorname")
_QUANTITY = FieldSpec(
    "quantity",
    ColumnKind.DECIMAL,
    aliases=("qty", "quant", "total quantity", "total qty", "menge", "anzahl", "stückzahl"),
)

MTO: Final = TableSpec(
    "mto_lines",
    _SERVICE,
    ("drawing", "commodity_code", "size", SEQUENCE),
    (
        code(
            "drawing",
            *("drawing no", "drawing number", "dwg", "dwg no", "isometric", "iso", "iso no"),
            *("zeichnung", "zeichnungsnummer", "zeichnungsnr", "isometrie"),
            required=True,
        ),
        code(
            "commodity_code",
            *("commodity", "comm code", "material code", "ident code", "ident", "item code"),
            *("materialnummer", "material nr", "artikelnummer", "ident nr"),
            required=True,
        ),
        code(
            "size",
            *("nominal size", "nps", "dn", "diameter", "nominal diameter", "main size"),
            *("nennweite", "durchmesser", "größe"),
            blank="",
        ),
        FieldSpec(
            SEQUENCE,
            ColumnKind.INTEGER,
            aliases=("seq", "seq no", "sequence no", "occurrence", "lfd nr", "laufende nummer"),
            minimum=1,
            filled=True,
        ),
        code(
            "line_no",
            *("line", "line number", "pipeline", "line id", "leitung", "leitungsnummer"),
            *("rohrleitung", "rohrleitungsnummer"),
        ),
        code("spool", "spool no", "spool number", "spoolnummer", "spool nr"),
        code(
            "area",
            *("unit area", "plant area", "bereich", "teilanlage", "anlagenteil"),
            units=(),
        ),
        code("system", "system no", "sub system", "anlagensystem"),
        code("spec", "piping spec", "pipe spec", "piping class", "class", "rohrklasse"),
        _DESCRIPTION,
        FieldSpec(
            "quantity", ColumnKind.DECIMAL, True, aliases=(*_QUANTITY.aliases, "length", "länge")
        ),
        _UNIT,
        code("revision", "rev", "rev no", "revision no", "index", "änderungsindex"),
    ),
    row="drawing, commodity code, size and sequence",
)

ESTIMATE: Final = TableSpec(
    "estimate_lines",
    _SERVICE,
    ("item_code", SECTION, SEQUENCE),
    (
        code(
            "item_code",
            *("item", "item no", "item number", "code", "position", "pos", "pos nr", "lv position"),
            required=True,
        ),
        FieldSpec(
            SECTION,
            ColumnKind.CODE,
            aliases=("bill section", "section path"),
            max_length=255,
            blank="",
        ),
        FieldSpec(SEQUENCE, ColumnKind.INTEGER, minimum=1, filled=True),
        code("cost_code", "cost account", "account", "kostenart", "kostenstelle", "kostencode"),
        code("wbs_code", "wbs", "work breakdown", "psp", "psp element", "psp code"),
        _DESCRIPTION,
        _UNIT,
        _QUANTITY,
        amount("unit_rate", "rate", "unit price", "unit cost", "einheitspreis", "ep"),
        amount(
            "man_hours",
            *("mh", "hours", "labour hours", "stunden", "lohnstunden"),
            units=("h", "hr", "hrs", "hour", "hours", "mh", "man hours", "std", "stunden"),
        ),
        amount("labour_cost", "labor cost", "labour", "labor", "lohnkosten", "lohn"),
        amount("material_cost", "material", "materials", "materialkosten"),
        amount("equipment_cost", "equipment", "gerätekosten", "geräte"),
        amount(
            "subcontract_cost",
            *("subcontract", "subcontractor", "subcontractor cost", "nachunternehmer"),
            *("nachunternehmerkosten", "fremdleistung"),
        ),
        FieldSpec("markup", ColumnKind.DECIMAL, aliases=("zuschlag",)),
    ),
    row="item code, section and sequence",
    needed="quantity",
)

_CURRENCY = code("currency", "curr", "currency code", "währung", "whg")

EQUIPMENT: Final = TableSpec(
    "equipment",
    _PROJECT,
    ("code",),
    (
        code(
            "code",
            *("equipment code", "equipment no", "equipment number", "equipment id", "asset no"),
            *("gerätenummer", "geräte nr", "inventarnummer", "nummer"),
            required=True,
        ),
        _DESCRIPTION,
        text("category", "equipment category", "group", "type", "kategorie", "gruppe", "art"),
        text("make", "manufacturer", "brand", "hersteller", "marke", "fabrikat"),
        text("model", "model no", "modell", "typ"),
        code("serial", "serial no", "serial number", "s/n", "seriennummer", "fabriknummer"),
        FieldSpec(
            "ownership",
            ColumnKind.CHOICE,
            aliases=("owned/rented", "owned or rented", "own/rent", "owner", "besitz", "eigentum"),
            choices=MappingProxyType(
                {
                    "owned": ("own", "o", "company owned", "eigen", "eigentum", "eigengerät"),
                    "rented": (
                        "rent",
                        "r",
                        "rental",
                        "hired",
                        "hire",
                        "leased",
                        "miete",
                        "gemietet",
                    ),
                }
            ),
        ),
        amount("rate", "hourly rate", "day rate", "rental rate", "satz", "mietsatz", "kostensatz"),
        text(
            "rate_unit",
            *("rate per", "rate uom", "per", "satzeinheit", "je"),
            max_length=32,
        ),
        text("fuel", "fuel type", "kraftstoff", "treibstoff", "antrieb"),
        text("status", "state", "condition", "zustand"),
    ),
    row="code",
)

MATERIAL: Final = TableSpec(
    "materials",
    _PROJECT,
    ("code",),
    (
        code(
            "code",
            *("material code", "material no", "material number", "item code", "article", "sku"),
            *(
                "materialnummer",
                "materialnr",
                "artikelnummer",
                "artikel nr",
                "artikel",
                "nummer",
            ),
            required=True,
        ),
        _DESCRIPTION,
        _UNIT,
        amount("price", "unit price", "cost", "preis", "einzelpreis", "stückpreis", "ep"),
        _CURRENCY,
        text("supplier", "vendor", "lieferant", "händler"),
        FieldSpec(
            "lead_time_days",
            ColumnKind.INTEGER,
            aliases=("lead time", "lieferzeit", "lieferzeit (tage)"),
            minimum=0,
            units=("d", "day", "days", "calendar days", "working days", "tage", "werktage"),
        ),
    ),
    row="code",
)

CREW_TRADE: Final = TableSpec(
    "crew_trades",
    _PROJECT,
    ("code",),
    (
        code("code", "trade code", "trade", "gewerk", "gewerkcode", "gewerke nr", required=True),
        _NAME,
        amount("straight_rate", "straight time", "straight time rate", "st rate", "normalstunde"),
        amount("over_rate", "overtime", "over time rate", "ot rate", "überstunde"),
        amount("double_rate", "double time", "double time rate", "dt rate", "doppelstunde"),
        amount("burden", "burden rate", "fringe", "fringes", "lohnnebenkosten"),
    ),
    row="code",
)

CREW: Final = TableSpec(
    "crews",
    _PROJECT,
    ("code",),
    (
        code("code", "crew code", "crew", "crew no", "kolonne", "kolonnennummer", required=True),
        _NAME,
        text("foreman", "supervisor", "lead", "vorarbeiter", "kolonnenführer", "polier"),
        text("shift", "shift name", "schicht"),
        text("calendar", "work calendar", "kalender"),
        amount("output_per_hour", "output", "output/hour", "output/h", "leistung", "leistung/h"),
    ),
    row="code",
)

CREW_MEMBER: Final = TableSpec(
    "crew_members",
    _PROJECT,
    ("employee_no", "valid_from"),
    (
        code(
            "employee_no",
            *("employee", "employee number", "employee id", "emp no", "badge", "badge no"),
            *("personalnummer", "personal nr", "pers nr", "mitarbeiternummer"),
            required=True,
        ),
        FieldSpec(
            "valid_from",
            ColumnKind.DATE,
            required=True,
            aliases=("from", "from date", "start", "start date", "von", "gültig ab"),
            part="first",
        ),
        _NAME,
        code("crew", "crew code", "crew no", "kolonne"),
        code("trade", "trade code", "craft", "gewerk"),
        text("classification", "class", "grade", "einstufung", "lohngruppe", "klasse"),
        FieldSpec(
            "valid_to",
            ColumnKind.DATE,
            aliases=("to", "to date", "end", "end date", "until", "bis", "gültig bis"),
            part="last",
        ),
    ),
    row="employee and date",
    period=("valid_from", "valid_to"),
)

TABLES: Final[Mapping[DocumentType, TableSpec]] = MappingProxyType(
    {
        DocumentType.MTO: MTO,
        DocumentType.ESTIMATION_MASTER: ESTIMATE,
        DocumentType.EQUIPMENT: EQUIPMENT,
        DocumentType.MATERIAL: MATERIAL,
        DocumentType.CREW: CREW,
        DocumentType.CREW_MEMBER: CREW_MEMBER,
        DocumentType.CREW_TRADE: CREW_TRADE,
    }
)


def scope_of(message: TableMessage) -> dict[str, str]:
    """Values of the scope columns: what `replace` may remove lies within them."""
    scope = {"project_id": message.project_id}
    if isinstance(message, MtoMessage | EstimationMasterMessage):
        scope["service_id"] = message.service_id
    return scope


def _bulk(document_type: DocumentType) -> TypeFacts:
    return TypeFacts(
        document_type=document_type,
        handler=Handler.CHANGE_ACTIVITIES,
        table="schedule_activities",
        needs_blob=False,
    )


def _delete(document_type: DocumentType, table: str) -> TypeFacts:
    return TypeFacts(
        document_type=document_type,
        handler=Handler.DELETE_SERVICE,
        table=table,
        needs_blob=False,
    )


REGISTRY: Mapping[DocumentType, TypeFacts] = MappingProxyType(
    {
        facts.document_type: facts
        for facts in (
            *(
                TypeFacts(
                    document_type=document_type,
                    handler=Handler.LOAD_ROWS,
                    table=spec.table,
                    guard="idempotency_key",
                )
                for document_type, spec in TABLES.items()
            ),
            TypeFacts(
                document_type=DocumentType.SCHEDULE_EXTRACTION,
                handler=Handler.LOAD_SCHEDULE,
                table="schedule_activities",
                guard="extraction_id",
            ),
            TypeFacts(
                document_type=DocumentType.SCHEDULE_PROJECT_EXTRACTION,
                handler=Handler.LIST_SCHEDULE_PROJECTS,
                own_download=True,
            ),
            TypeFacts(
                document_type=DocumentType.SCHEDULE_UPLOAD,
                handler=Handler.STORE_UPLOAD,
                own_download=True,
            ),
            _bulk(DocumentType.SCHEDULE_DELETE_ALL),
            _bulk(DocumentType.SCHEDULE_FILL_LEVEL),
            _bulk(DocumentType.SCHEDULE_CLEAR_LEVEL),
            _bulk(DocumentType.SCHEDULE_FILL_COLUMN),
            _delete(DocumentType.ESTIMATION_MASTER_DELETE, "estimate_lines"),
            _delete(DocumentType.MTO_DELETE, "mto_lines"),
        )
    }
)
"""One row per document type."""
