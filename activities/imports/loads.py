"""One load of rows: which work its progress mark belongs to, and how its rows go in."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from activities.imports.table_reader import TableReader
from adapters.ports import Documents
from contracts.blobs import BlobRef
from contracts.imports import DocumentType, HandlerInput, Strategy, TableMessage
from domain.errors import RuleViolation
from domain.imports.chunks import LoadMark, RowChunk, TaskKey
from domain.imports.tables import TABLES, TableSpec

_LATER: Final = (
    *("unknown_fields", "map", "date_order"),
    *("decimal", "leading_zeros", "max_rejected_share", "left_out", "keep_lines"),
    "without_quantities",
)
"""Fields of a message that earlier releases did not have."""


@dataclass(frozen=True, slots=True)
class Load:
    """One import of rows on its way: the work that its progress mark belongs to."""

    message: TableMessage
    kind: DocumentType
    spec: TableSpec
    key: TaskKey
    identity: str
    """First part of the load's header; the titles of the report follow."""

    @property
    def asks(self) -> bool:
        """Whether a person is to be asked about rows that are no data."""
        return self.message.left_out == "ask"

    def is_under_way(self, mark: LoadMark) -> bool:
        """Whether the mark is one of this very work, and not of what a person has corrected."""
        return mark.header[:1] == (self.identity,)

    def is_done(self, mark: LoadMark) -> bool:
        """Whether nothing is left to read; a closed import's mark is finished without header."""
        return mark.finished and (not mark.header or self.is_under_way(mark))

    def reader(self, documents: Documents, path: Path, chunk_rows: int) -> TableReader:
        """What reads the document."""
        return TableReader(documents, path, self.message, self.spec, chunk_rows)

    @property
    def staged(self) -> bool:
        """Whether no row is seen before all are.

        `append` is staged as well: its rows get their numbers once, in the one transaction that
        finishes the load, so that no restart can append them again. So are rows of which one ends
        another: what becomes of them must not depend on where chunks end.
        """
        return self._needs_all or self.spec.period is not None

    @property
    def _needs_all(self) -> bool:
        return self.message.all_or_nothing or self.message.strategy in (
            Strategy.REPLACE,
            Strategy.APPEND,
        )

    def is_single(self, chunk: RowChunk, exhausted: bool) -> bool:
        """Whether one transaction is all that a document costs: it is small, without problems."""
        return exhausted and not chunk.rejected and not self._needs_all

    def held_back(self, mark: LoadMark) -> bool:
        """Whether rejected rows keep the whole document out."""
        return self.message.all_or_nothing and mark.counts.rejected > 0

    def refuse_to_append_again(self, mark: LoadMark) -> None:
        """An append that has gone in cannot be corrected by another one.

        Raises:
            RuleViolation: Rows of another version of this work are in.
        """
        appended = mark.finished and mark.counts.created > 0 and not self.is_done(mark)
        if appended and self.message.strategy is Strategy.APPEND:
            raise RuleViolation(
                f"{mark.counts.created} rows of this task were appended already; skip this run "
                "and send what is left as a new task"
            )

    def swap_strategy(self, mark: LoadMark, stored: Sequence[str]) -> Strategy:
        """What to do with the staged rows.

        A row that the file holds but that was rejected must not count as gone: with any rejected
        row, `replace` removes nothing. Nor does it where a row was left out that holds the key of
        a stored one.
        """
        if self.message.strategy is Strategy.REPLACE and (mark.counts.rejected or stored):
            return Strategy.MERGE
        return self.message.strategy


def begin(work: HandlerInput) -> Load:
    """Return the load that a step was given.

    Raises:
        RuleViolation: Its message is about no table, or promises what its strategy cannot keep.
    """
    message = work.message
    if not isinstance(message, TableMessage) or message.document_type not in TABLES:
        raise RuleViolation(f"{work.plan.facts.document_type} is not a table import")
    spec = TABLES[message.document_type]
    store_refuses = message.strategy is Strategy.UPDATE_ONLY or (
        message.strategy is Strategy.APPEND and not spec.numbered
    )
    if message.all_or_nothing and store_refuses:
        raise RuleViolation(
            f"all_or_nothing cannot be promised with strategy {message.strategy.value!r}: "
            "which rows are known shows only when they are written; leave one of them out"
        )
    key = TaskKey(message.project_id, message.task_id)
    return Load(message, message.document_type, spec, key, _identity(message, work.plan.source))


def _identity(message: TableMessage, source: BlobRef | None) -> str:
    """Names the work that a mark belongs to: this message about this version of the file.

    The steps before a load may run again when a worker dies, and so may the first step after a
    person has corrected the message: only what is loaded shows whether progress still counts.
    """
    version = (source.etag or source.sha256 or "") if source is not None else ""
    fields = type(message).model_fields
    # So that a load which an earlier release began is the same work.
    later = {
        name
        for name in _LATER
        if name in fields
        and getattr(message, name) == fields[name].get_default(call_default_factory=True)
    }
    content = message.model_dump_json(exclude=later)
    return hashlib.sha256(f"{content}\n{version}".encode()).hexdigest()
