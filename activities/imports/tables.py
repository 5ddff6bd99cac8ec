"""Which table a document type fills, of docflow's own types and of declared ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from types import MappingProxyType

from adapters.database.engine import Database
from adapters.types.checks import checks_of
from adapters.types.countries import country_names
from adapters.types.files import builtin_types, own_types
from adapters.types.references import Referred, referred_by
from adapters.types.store import SqlDeclaredTypes
from adapters.types.tables import SCHEMA, declared_of, register_table
from workflows.imports.messages import AnyTableMessage, DeclaredMessage, DocumentType, ImportMessage
from workflows.imports.runs import TypeInfo
from workflows.imports.types import REGISTRY, TABLES, TableSpec, facts_of, table_spec
from workflows.shared.declared_fields import meant
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation


@cache
def own_tables() -> Mapping[DocumentType, TableSpec]:
    """docflow's own types of tables."""
    types = builtin_types()
    return MappingProxyType(
        {kind: _spec(types[kind.value], table) for kind, table in TABLES.items()}
    )


def _declared_table(declared: DeclaredType, schema: str | None) -> TableSpec:
    return _registered(declared.canonical, schema)


@lru_cache(maxsize=256)
def _registered(declaration: str, schema: str | None) -> TableSpec:
    declared = declared_of(declaration)
    return _spec(declared, register_table(declared, schema=schema))


def _spec(declared: DeclaredType, table: str) -> TableSpec:
    has_countries = any(field.kind == "country" for field in declared.fields.values())
    return table_spec(declared, table, country_names() if has_countries else {})


def spec_of(declared: DeclaredType) -> TableSpec:
    """The table of a type, of docflow's own or a declared one."""
    own = own_tables()
    return (
        own[DocumentType(declared.name)]
        if declared.name in own
        else _declared_table(declared, SCHEMA)
    )


def spec_of_file(declared: DeclaredType) -> TableSpec:
    """How files of a type are read that need not be in force; nothing of it can be stored.

    Raises:
        RuleViolation: A check of it is not installed on this machine.
    """
    return _checked(_spec(declared, declared.name), declared)


def _checked(spec: TableSpec, declared: DeclaredType) -> TableSpec:
    return replace(spec, checks=checks_of(declared)) if declared.checks else spec


class TableTypes:
    """Finds the type of a table message.

    Every method raises `Unavailable` when a declared type is asked for and the database is away.

    Args:
        database: Where declared types are kept.
        schema: Of the tables of declared types; None: that of the session, as in a dry run.
    """

    def __init__(self, database: Database, *, schema: str | None = SCHEMA) -> None:
        self._types = SqlDeclaredTypes(database)
        self._schema = schema

    async def facts(self, message: ImportMessage) -> TypeInfo:
        """What is known about the type of a message.

        Raises:
            RuleViolation: No such type, or version of it, is declared.
        """
        if not isinstance(message, DeclaredMessage):
            return REGISTRY[message.document_type]
        declared = await self._declared(message, message.type_digest)
        spec = _declared_table(declared, self._schema)
        return facts_of(declared.name, spec.table, declared.digest)

    async def spec(self, message: AnyTableMessage, facts: TypeInfo) -> TableSpec:
        """How the files of a message are read.

        Args:
            message: The message.
            facts: As they were decided when the run began.

        Raises:
            RuleViolation: No such type, or version of it, is declared; or a check of it is not
                installed on this machine.
        """
        if not isinstance(message, DeclaredMessage):
            return own_tables()[message.document_type]
        declared = await self._declared(message, facts.type_digest)
        return _checked(_declared_table(declared, self._schema), declared)

    async def superseded(self, spec: TableSpec) -> Sequence[str]:
        """A sentence for the note, if another version of a declared type is in force by now."""
        declared = spec.declared
        if declared is None or declared.name in builtin_types():
            return ()
        newest = (await self._types.in_force()).get(declared.name)
        if newest is None or newest.digest == declared.digest:
            return ()
        return (
            f"The type {declared.name} has changed since; this import kept version "
            f"{declared.digest[:12]}. To use the newest one, send the file again.",
        )

    async def referred(self, spec: TableSpec) -> Mapping[str, Referred]:
        """What the references of a table refer to, by field.

        Raises:
            RuleViolation: A type that is referred to is not in force.
        """
        declared = spec.declared
        if declared is None or not spec.has_references:
            return {}
        return referred_by(declared, await self._types.in_force(), schema=self._schema)

    async def _declared(self, message: DeclaredMessage, digest: str | None) -> DeclaredType:
        name = message.document_type
        if digest is not None:
            found = await self._types.version(digest)
            if found is None or found.name != name:
                raise RuleViolation(f"there is no version {digest[:12]} of the type {name}")
            return found
        known = await self._types.in_force()
        if name not in known:
            if name in own_types():
                raise RuleViolation(
                    f"rows of {name} belong to an organisation: upload the file as a dry run"
                )
            names = ", ".join(known) or "no declared types"
            raise RuleViolation(
                f"there is no type {name}; {meant(name, known)}there are {names}. Put it in force "
                "with `docflow type apply`, and retry"
            )
        return known[name]
