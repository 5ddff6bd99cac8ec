"""The document types as data: what their files hold, and what makes a row the same row."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

from workflows.imports.messages import DeclaredMessage, DocumentType, Strategy, TableMessage
from workflows.imports.runs import Handler, TypeInfo
from workflows.shared.declared_fields import DeclaredRule, field_spec
from workflows.shared.declared_types import DeclaredType, RowCheck
from workflows.shared.errors import RuleViolation
from workflows.shared.fields import FieldSpec
from workflows.shared.row_rules import keeps_stored, kept_fields
from workflows.shared.sections import SECTION, SEQUENCE


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
        declared: The declaration that it is made of.
        period: The fields of which the second must not be a day before the first.
        needed: A document fills this field in some row, unless its message says otherwise.
        checks: What checks its rows beside rules; those that the declaration names.
    """

    table: str
    scope: tuple[str, ...]
    key: tuple[str, ...]
    fields: tuple[FieldSpec, ...]
    row: str = ""
    period: tuple[str, str] | None = None
    needed: str | None = None
    declared: DeclaredType | None = None
    checks: tuple[RowCheck, ...] = ()

    @property
    def natural_key(self) -> tuple[str, ...]:
        """Columns that name a row."""
        return self.scope + self.key

    @property
    def rules(self) -> Sequence[DeclaredRule]:
        """What must hold of the fields of one row."""
        return () if self.declared is None else self.declared.rules

    @property
    def has_references(self) -> bool:
        """Whether cells refer to rows of other tables."""
        fields = () if self.declared is None else self.declared.fields.values()
        return any(field.kind == "reference" for field in fields)

    @property
    def is_elsewhere(self) -> bool:
        """Whether rows go into a table of a team, or a file, and not into docflow's own."""
        return self.declared is not None and self.declared.target is not None

    def kept_fields(self, strategy: Strategy | None, given: Collection[str]) -> Sequence[str]:
        """Return the fields of rules that the file does not give, and stored rows keep."""
        declared = self.declared
        if declared is None or strategy is None or not keeps_stored(declared, strategy.value):
            return ()
        return kept_fields(declared, given)

    @property
    def unmapped(self) -> Literal["ignore", "refuse", "keep"]:
        """What happens to columns that mean no field."""
        return "ignore" if self.declared is None else self.declared.unmapped

    @property
    def numbered(self) -> bool:
        """Whether lines of the same key are distinguished by their order in the file."""
        return self.key[-1] == SEQUENCE

    def item(self, columns: Collection[str]) -> str:
        """Return the field of the key that tells most about a row.

        Args:
            columns: Fields that the file has columns for, at least one of the key among them.
        """
        named = [name for name in self.key if name in columns]
        # What headings and counting can give comes last, in whatever order the key lists it.
        return min(named, key=(SECTION, SEQUENCE).__contains__)

    @cached_property
    def by_name(self) -> Mapping[str, FieldSpec]:
        """Field by column name."""
        return {spec.name: spec for spec in self.fields}

    @cached_property
    def by_header(self) -> Mapping[str, FieldSpec]:
        """Field by every squashed header that means it."""
        return {header: spec for spec in self.fields for header in sorted(spec.headers)}


Message = TypeVar("Message", bound=TableMessage)


def with_defaults(message: Message, spec: TableSpec) -> Message:
    """The message, with what it leaves to its type.

    Raises:
        RuleViolation: The type appends rows, and the message names no work.
    """
    declared = spec.declared
    changes: dict[str, Any] = {}
    if message.strategy is Strategy.TYPE:
        changes["strategy"] = Strategy(declared.strategy if declared else Strategy.MERGE)
    if message.left_out == "type":
        changes["left_out"] = declared.left_out if declared else "note"
    if changes.get("strategy") is Strategy.APPEND and message.idempotency_key is None:
        raise RuleViolation("rows of this type are appended: give an idempotency_key")
    return message.model_copy(update=changes) if changes else message


def table_spec(
    declared: DeclaredType, table: str, countries: Mapping[str, Sequence[str]]
) -> TableSpec:
    """How files of a declared type are read.

    Args:
        declared: The type.
        table: What the store calls its table.
        countries: Two letters of ISO 3166 to the other ways to write a country.
    """
    return TableSpec(
        table=table,
        scope=declared.scope,
        key=declared.key,
        fields=tuple(field_spec(name, each, countries) for name, each in declared.fields.items()),
        row=declared.row,
        period=declared.period,
        needed=declared.needed,
        declared=declared,
    )


def facts_of(name: str, table: str, digest: str) -> TypeInfo:
    """What docflow knows about a declared type.

    Args:
        name: Of the type.
        table: What the store calls its table.
        digest: The version of the type.
    """
    return TypeInfo(
        document_type=name,
        handler=Handler.LOAD_ROWS,
        table=table,
        guard="idempotency_key",
        type_digest=digest,
    )


def scope_of(message: TableMessage, spec: TableSpec) -> dict[str, str]:
    """Values of the scope columns: what `replace` may remove lies within them.

    Raises:
        RuleViolation: The message of a declared type lacks one, or has one too many.
    """
    given = {"project_id": message.project_id}
    if isinstance(message, DeclaredMessage):
        given |= message.scope
    elif "service_id" in spec.scope:
        given["service_id"] = str(getattr(message, "service_id", ""))
    wanted = ", ".join(spec.scope) or "nothing"
    if missing := [name for name in spec.scope if name not in given]:
        raise RuleViolation(f"scope: {missing[0]} is missing; rows of this type need {wanted}")
    if more := sorted(given.keys() - {"project_id", *spec.scope}):
        raise RuleViolation(f"scope: {more[0]} is not known; rows of this type need {wanted}")
    return {name: given[name] for name in spec.scope}


TABLES: Final[Mapping[DocumentType, str]] = MappingProxyType(
    {
        DocumentType.MTO: "mto_lines",
        DocumentType.ESTIMATION_MASTER: "estimate_lines",
        DocumentType.EQUIPMENT: "equipment",
        DocumentType.MATERIAL: "materials",
        DocumentType.CREW: "crews",
        DocumentType.CREW_MEMBER: "crew_members",
        DocumentType.CREW_TRADE: "crew_trades",
    }
)
"""docflow's own types of tables, and the table of each; what their files hold is declared."""


def _bulk(document_type: DocumentType) -> TypeInfo:
    return TypeInfo(
        document_type=document_type,
        handler=Handler.CHANGE_ACTIVITIES,
        table="schedule_activities",
        needs_blob=False,
    )


def _delete(document_type: DocumentType, table: str) -> TypeInfo:
    return TypeInfo(
        document_type=document_type,
        handler=Handler.DELETE_SERVICE,
        table=table,
        needs_blob=False,
    )


REGISTRY: Mapping[str, TypeInfo] = MappingProxyType(
    {
        facts.document_type: facts
        for facts in (
            *(
                TypeInfo(
                    document_type=document_type,
                    handler=Handler.LOAD_ROWS,
                    table=table,
                    guard="idempotency_key",
                )
                for document_type, table in TABLES.items()
            ),
            TypeInfo(
                document_type=DocumentType.SCHEDULE_EXTRACTION,
                handler=Handler.LOAD_SCHEDULE,
                table="schedule_activities",
                guard="extraction_id",
            ),
            TypeInfo(
                document_type=DocumentType.SCHEDULE_PROJECT_EXTRACTION,
                handler=Handler.LIST_SCHEDULE_PROJECTS,
                own_download=True,
            ),
            TypeInfo(
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
