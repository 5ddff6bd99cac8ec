"""Rows and readings for tests of the import store."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select

from adapters.database.engine import Database
from adapters.database.models.every import DOMAIN, key_of
from workflows.imports.messages import IMPORT_MESSAGE, DocumentType, ImportMessage
from workflows.imports.runs import ImportPlan, RowChunk
from workflows.imports.types import REGISTRY
from workflows.shared.cells import RejectedRow
from workflows.shared.contracts import BlobRef, Problem


def chunk(
    table: str,
    columns: str,
    *rows: tuple[Any, ...],
    cursor: int | None = None,
    first_line: int = 2,
    cells: bool = True,
    rejected: Sequence[RejectedRow] = (),
) -> RowChunk:
    """A chunk whose lines follow each other; `columns` are separated by spaces."""
    return RowChunk(
        table=table,
        columns=tuple(columns.split()),
        rows=rows,
        lines=range(first_line, first_line + len(rows)),
        cells=[[str(value) for value in row] for row in rows] if cells else (),
        rejected=rejected,
        cursor=len(rows) if cursor is None else cursor,
    )


def reject(line: int, reason: str = "required", cells: Sequence[Any] = ()) -> RejectedRow:
    """A row that did not get as far as the store."""
    return RejectedRow(line, cells, [Problem(line=line, column="Code", reason=reason)])


OF_SERVICES = ("mto_lines", "estimate_lines")


def message(document_type: str = "equipment", **fields: Any) -> ImportMessage:
    """A message with what its type needs."""
    facts = REGISTRY[DocumentType(document_type)]
    needed = {
        "task_id": "t1",
        "project_id": "p1",
        **({"blob_name": "uploads/file.csv"} if facts.needs_blob or facts.own_download else {}),
        **({"service_id": "s1"} if facts.table in OF_SERVICES else {}),
    }
    return IMPORT_MESSAGE.validate_python({"document_type": document_type, **needed, **fields})


def plan(document_type: str = "equipment") -> ImportPlan:
    """What a run would have decided."""
    return ImportPlan(
        facts=REGISTRY[DocumentType(document_type)],
        path="local",
        source=BlobRef(name="uploads/file.csv", size=1234, sha256="ab" * 32),
    )


async def stored(database: Database, table: str, columns: str) -> list[tuple[Any, ...]]:
    """These columns of every row, ordered by natural key."""
    target = DOMAIN[table]
    query = select(*(target.c[name] for name in columns.split())).order_by(
        *(target.c[name] for name in key_of(target))
    )
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(query)]


async def count(database: Database, table: Any) -> int:
    """How many rows a table holds."""
    async with database.reading() as connection:
        return len((await connection.execute(select(table))).all())
