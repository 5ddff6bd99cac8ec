"""Codes that tables hold, and what people said about them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Table,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.bulk.protocol import BulkEngine
from adapters.database.models.base import metadata
from adapters.database.models.imports import import_answers
from domain.imports.chunks import TaskKey


async def remember(
    connection: AsyncConnection,
    bulk: BulkEngine,
    key: TaskKey,
    document_type: str,
    question: str,
    answer: str,
    now: datetime,
) -> None:
    """Keep an answer for a project and type; the newest counts."""
    values = {"answer": answer, "task_id": key.task_id, "answered_at": now}
    names = {"project_id": key.project_id, "document_type": document_type, "question": question}
    await connection.execute(
        bulk.insert_statement(import_answers)
        .values(**names, **values)
        .on_conflict_do_update(index_elements=list(names), set_=values)
    )


async def remembered(
    connection: AsyncConnection, project_id: str, document_type: str, question: str
) -> str | None:
    """The answer to a question; None: none was given."""
    columns = import_answers.c
    query = select(columns.answer).where(
        columns.project_id == project_id,
        columns.document_type == document_type,
        columns.question == question,
    )
    return (await connection.execute(query)).scalar_one_or_none()


async def zero_led_lengths(
    connection: AsyncConnection,
    key: TaskKey,
    table: str,
    scope: Mapping[str, Any],
    names: Sequence[str],
) -> Sequence[int]:
    """Lengths of the first code where one begins with a zero, but for rows of the task itself."""
    found = metadata.tables[table]
    query = (
        select(func.length(found.c[names[0]]))
        .where(_within(found, scope), zero_led(found, names), found.c.source_task != key.task_id)
        .distinct()
    )
    return sorted((await connection.execute(query)).scalars())


def zero_led(table: Table, names: Sequence[str]) -> ColumnElement[bool]:
    """Whether some code of a row begins with a zero."""
    # Not a parameter: with one, a generic plan reads all rows of the scope instead of the index.
    beginning = literal_column("'0%'", Text)
    return or_(*(table.c[name].like(beginning) for name in names))


async def known(
    connection: AsyncConnection,
    bulk: BulkEngine,
    key: TaskKey,
    table: str,
    scope: Mapping[str, Any],
    names: Sequence[str],
    firsts: Sequence[str],
) -> Mapping[tuple[str, ...], bool]:
    """Codes of a scope by their first one, and whether the task itself has written each."""
    found = metadata.tables[table]
    query = select(*(found.c[name] for name in names), found.c.source_task).where(
        _within(found, scope), bulk.among(found.c[names[0]], firsts)
    )
    rows = await connection.execute(query.distinct())
    return {tuple(row[:-1]): row[-1] == key.task_id for row in rows}


async def give_sections(
    connection: AsyncConnection,
    table: str,
    scope: Mapping[str, Any],
    sections: Mapping[str, str],
) -> None:
    """Give stored lines without a section theirs, if their item stands there once."""
    lines, others = metadata.tables[table], metadata.tables[table].alias()
    item, section = bindparam("item", type_=Text), bindparam("within", type_=Text)
    several = exists().where(
        _within(others, scope),
        others.c.item_code == item,
        or_(
            others.c.section == section,
            and_(others.c.section == "", others.c.sequence != lines.c.sequence),
        ),
    )
    given = (
        update(lines)
        .where(_within(lines, scope), lines.c.item_code == item, lines.c.section == "", ~several)
        .values(section=section, sequence=1)
    )
    await connection.execute(
        given, [{"item": item, "within": section} for item, section in sections.items()]
    )


def _within(table: FromClause, scope: Mapping[str, Any]) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in scope.items()))
