"""What an import of a type would do with a sample; nothing is stored."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from activities.imports.references import References, StoredRules
from activities.imports.rows import note_of
from activities.imports.store import SqlImportStore
from activities.imports.table_reader import TableReader
from activities.imports.tables import spec_of_file
from adapters.files.documents import FileDocuments
from adapters.types.files import builtin_types
from adapters.types.references import Referred, referred_by, table_of
from workflows.imports.messages import DeclaredMessage
from workflows.imports.runs import RowChunk, TaskKey
from workflows.imports.types import TableSpec, scope_of, with_defaults
from workflows.shared.contracts import Problem
from workflows.shared.declared_types import DeclaredType, check_references
from workflows.shared.durations import duration_text
from workflows.shared.fields import ColumnKind


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """What an import would do with one row of a sample.

    Attributes:
        line: Of the sample.
        values: By field, as they would be stored, but durations as people write them; empty for a
            row that is rejected.
        problems: Why it is rejected.
    """

    line: int
    values: dict[str, object]
    problems: Sequence[Problem] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """What an import would do with a sample."""

    rows: Sequence[CheckedRow]
    note: str | None

    @property
    def rejected(self) -> Sequence[CheckedRow]:
        """The rows that would not go in."""
        return [row for row in self.rows if row.problems]


@dataclass(frozen=True, slots=True)
class Stored:
    """The rows that references of a sample are looked up in.

    Attributes:
        store: The database; None: there is none.
        types: The types that are in force, by name.
        scope: The names in the scope whose values are known.
        why_not: Why there is no database.
    """

    store: SqlImportStore | None = None
    types: Mapping[str, DeclaredType] = field(default_factory=dict[str, DeclaredType])
    scope: Collection[str] = ()
    why_not: str = "no database is reachable"


async def check(
    declared: DeclaredType,
    sample: Path,
    folder: Path,
    message: DeclaredMessage,
    stored: Stored | None = None,
) -> Checked:
    """Read a sample as an import of a type would.

    Args:
        declared: The type; it need not be in force.
        sample: The file.
        folder: Scratch folder.
        message: What the import would be told.
        stored: Where rows are that its rows refer to.

    Raises:
        UnreadableDocument: No table can be read from it.
        InvalidDocument: It is for a person to say what it holds.
        RuleViolation: The message does not fit the type.
    """
    spec = spec_of_file(declared)
    message = with_defaults(message.model_copy(update={"idempotency_key": "check"}), spec)

    def opened() -> TableReader:
        return TableReader(FileDocuments(), sample, message, spec, folder=folder)

    reader, rows = opened(), list[CheckedRow]()
    referred, notes = _referred_by(declared, spec, stored or Stored())
    references = References(
        *(_Lookup(spec, stored or Stored()), TaskKey(message.project_id, message.task_id), spec),
        scope_of(message, spec),
        # What a person would be asked about is shown row by row.
        {n: replace(r, unknown="refuse") if _asks(r) else r for n, r in referred.items()},
        *(reader.title, opened),
    )
    # No stored row is read: a type that is not in force has none.
    rules, as_new = StoredRules(None, spec, message.strategy, reader.title), set[str]()
    try:
        reader.open()
        while (chunk := reader.next_chunk()) is not None:
            rows += _checked(await rules.settle(await references.settle(chunk)), spec)
            as_new |= {*spec.kept_fields(message.strategy, chunk.columns)}
        asking = {reader.title(name): each for name, each in referred.items() if _asks(each)}
    finally:
        reader.close()
    absent = {p.column for row in rows for p in row.problems if p.column in asking}
    notes += [
        f"An import waits at values of {title} until {asking[title].title} has them, or you "
        "correct the file."
        for title in sorted(map(str, absent))
    ]
    if as_new:
        listed = ", ".join(sorted(as_new))
        notes.append(f"Rules were checked as if all rows were new: the file lacks {listed}.")
    if message.left_out == "ask" and reader.findings.counts:
        notes.append("An import asks first whether the rows that are no data are left out.")
    return Checked(sorted(rows, key=lambda row: row.line), note_of(reader, notes))


def _asks(referred: Referred) -> bool:
    return referred.unknown == "ask"


def _checked(chunk: RowChunk, spec: TableSpec) -> list[CheckedRow]:
    clocks = {each.name for each in spec.fields if each.kind is ColumnKind.DURATION}
    rows: list[CheckedRow] = []
    for line, values in zip(chunk.lines, chunk.rows, strict=True):
        own: dict[str, Any] = {
            name: duration_text(value) if name in clocks and value is not None else value
            for name, value in zip(chunk.columns, values, strict=True)
            if name not in spec.scope
        }
        rows.append(CheckedRow(line, own))
    return rows + [CheckedRow(each.line, {}, each.problems) for each in chunk.rejected]


def _referred_by(
    declared: DeclaredType, spec: TableSpec, stored: Stored
) -> tuple[dict[str, Referred], list[str]]:
    """What references lead to that can be checked, and a sentence about each other one."""
    found: dict[str, Referred] = {}
    notes: list[str] = []
    types = {**builtin_types(), **stored.types, declared.name: declared}
    for name, each in declared.fields.items():
        if each.kind != "reference":
            continue
        is_own = each.to == declared.name
        if stored.store is None and not is_own:
            notes.append(f"{name} was not checked: {stored.why_not}.")
            continue
        if each.to is not None and each.to not in types:
            notes.append(f"{name} was not checked: the type {each.to} is not in force.")
            continue
        fields = {n: f for n, f in declared.fields.items() if n == name or f.kind != "reference"}
        alone = declared.model_copy(update={"fields": fields})
        check_references(alone, types)
        [referred] = referred_by(alone, types).values()
        missing = [n for n in referred.scope if n not in stored.scope]
        why = stored.why_not if stored.store is None else None
        if why is None and missing:
            is_project = missing[0] == "project_id"
            why = f"give {'--project' if is_project else f'--scope {missing[0]}=VALUE'}"
        if is_own:
            found[name] = replace(referred, table=spec.table)
            if why is not None:
                notes.append(f"{name} was checked against rows of the file alone: {why}.")
        elif why is not None:
            notes.append(f"{name} was not checked: {why}.")
        else:
            found[name] = referred
    return found, notes


class _Lookup:
    """Finds the rows that references name, and creates none."""

    def __init__(self, spec: TableSpec, stored: Stored) -> None:
        self._spec = spec
        self._stored = stored

    async def referred(
        self, referred: Referred, scope: Mapping[str, Any], values: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """As `SqlImportStore.referred`."""
        store = self._stored.store
        if referred.table == self._spec.table:
            # Its rows are in the table of the version that is in force.
            known = self._stored.types.get(str(referred.type_name))
            if known is None or {*referred.scope} - {*self._stored.scope}:
                return {}
            key = known.key[0]
            referred = replace(referred, table=table_of(known), key=key, label=key)
        return {} if store is None else await store.referred(referred, scope, values)

    async def make_referred(
        self,
        key: TaskKey,
        referred: Referred,
        scope: Mapping[str, Any],
        values: Sequence[tuple[Any, int]],
    ) -> None:
        """Create nothing: a check writes no rows."""
