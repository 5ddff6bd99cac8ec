"""Rows of uploads that go into a table of the team that declares their type, or into a file."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import compress, count, groupby
from operator import ne
from typing import Any

from pydantic_core import from_json, to_json
from sqlalchemy import Table, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from activities.spreadsheets.import_rows import LockedImport, table_name, target_table
from activities.spreadsheets.row_images import (
    Identity,
    Incoming,
    TableImages,
    UpdatedImage,
    parts_of,
    unpack,
)
from adapters.database.bulk import engine as bulk
from adapters.database.engine import Database
from adapters.database.foreign import Step
from adapters.database.foreign_rows import Image, Refused, Written
from adapters.database.models.spreadsheets import spreadsheet_imports, spreadsheet_journal
from adapters.types.store import known_table
from adapters.types.targets import TargetTables
from workflows.shared.contracts import Problem
from workflows.shared.declared_types import OTHER, DeclaredType
from workflows.spreadsheets.fields import SheetChunk, SheetMark


def run_name(uuid: str) -> str:
    """What an import is called in tables of teams."""
    return f"spreadsheet/{uuid}"


def undo_name(uuid: str, attempt: int) -> str:
    """What an attempt to undo an import is called in tables of teams."""
    return f"{run_name(uuid)}/undo {attempt}"


async def type_elsewhere(connection: AsyncConnection, opened: LockedImport) -> DeclaredType | None:
    """The type of an import, if its rows go elsewhere; its table is known from here on."""
    declared = await known_table(connection, opened.row.import_type, opened.row.type_digest)
    return None if declared is None or declared.target is None else declared


def step_of(uuid: str, chunk: SheetChunk, incoming: Incoming) -> Step:
    """What a chunk does in a table of a team, by its place in the import."""
    content = to_json([incoming.columns, list(incoming.origins), list(incoming.rows)])
    return Step(run_name(uuid), f"{chunk.round}/{chunk.number}", content)


def is_noted(mark: SheetMark, step: str) -> bool:
    """Whether docflow has noted a step of `step_of`."""
    round, _, number = step.partition("/")
    return (int(round), int(number)) < (mark.round, mark.chunk)


@dataclass
class MetElsewhere:
    """Outcome of some rows: places of their sources in the chunk."""

    images: list[TableImages] = field(default_factory=list[TableImages])
    created: set[int] = field(default_factory=set[int])
    changed: set[int] = field(default_factory=set[int])
    kept: set[int] = field(default_factory=set[int])
    refused: dict[int, Problem] = field(default_factory=dict[int, Problem])


def put_aside(incoming: Incoming, lines: Sequence[int]) -> MetElsewhere:
    """Rows that wait until all are in, and then become a file."""
    created = [
        (lines[origin], key, *row)
        for origin, key, row in zip(incoming.origins, incoming.keys, incoming.rows, strict=True)
    ]
    images = TableImages(table_name(incoming.table), incoming.columns, created)
    return _with_shared(MetElsewhere([images], created={*incoming.origins}), incoming, lines)


async def meet_there(
    targets: TargetTables,
    declared: DeclaredType,
    incoming: Incoming,
    lines: Sequence[int],
    step: Step,
    *,
    strategy: str,
    dry_run: bool,
) -> MetElsewhere:
    """Write rows into a table of a team.

    Args:
        targets: The tables.
        declared: The type.
        incoming: The rows.
        lines: Line of each source row of the chunk.
        step: Is done once.
        strategy: How rows meet those that are there.
        dry_run: Find out only.
    """

    async def pages() -> AsyncIterator[tuple[Sequence[Any], Sequence[int]]]:
        yield incoming.rows, range(len(incoming.rows))

    written = await targets.write(
        *(declared, step, incoming.columns, pages(), strategy),
        scope={},
        blanks_keep=True,
        dry=dry_run,
    )
    return _met(written, incoming, lines)


def _met(written: Written, incoming: Incoming, lines: Sequence[int]) -> MetElsewhere:
    table, origins = table_name(incoming.table), incoming.origins
    met = MetElsewhere(kept={origins[place] for place in written.kept})
    for each in written.refused:
        origin = origins[each.place]
        met.refused[origin] = _problem(each, incoming, lines[origin])
    # In their order: a row may need what another one was before.
    for (columns, is_new), images in groupby(written.every_image(), _kind_of):
        found = [(origins[each.place or 0], each) for each in images]
        changes = [(lines[origin], each) for origin, each in found]
        if is_new:
            met.created |= {origin for origin, _ in found}
            made = [(line, each.key, *(each.after or ())) for line, each in changes]
            met.images.append(TableImages(table, columns, made))
        else:
            met.changed |= {origin for origin, _ in found}
            changed = [_updated(line, each) for line, each in changes]
            met.images.append(TableImages(table, columns, updated=changed))
    return _with_shared(met, incoming, lines)


def _kind_of(image: Image) -> tuple[tuple[str, ...], bool]:
    return image.columns, image.before is None


def _updated(line: int, image: Image) -> UpdatedImage:
    before, after = image.before or (), image.after or ()
    places = list(compress(count(), map(ne, before, after)))
    return UpdatedImage(
        line, image.key, places, [before[n] for n in places], [after[n] for n in places]
    )


def _problem(refused: Refused, incoming: Incoming, line: int) -> Problem:
    value = None
    if refused.column in incoming.columns:
        value = incoming.rows[refused.place][incoming.columns.index(refused.column)]
    return Problem(
        line=line,
        column=refused.column,
        value=None if value is None else str(value)[:200],
        reason=refused.reason,
    )


def _with_shared(met: MetElsewhere, incoming: Incoming, lines: Sequence[int]) -> MetElsewhere:
    """The outcome, with that of further sources of a row."""
    for origin, first in incoming.shared:
        for places in (met.created, met.changed, met.kept):
            if first in places:
                places.add(origin)
        if first in met.refused:
            met.refused[origin] = met.refused[first].model_copy(update={"line": lines[origin]})
    return met


def images_there(images: Sequence[TableImages]) -> list[Image]:
    """What was done to a table of a team, as it takes it back."""
    found: list[Image] = []
    for each in images:
        found += [
            Image(parts_of(key), each.columns, None, tuple(after))
            for _, key, *after in each.created
        ]
        found += [
            Image(
                parts_of(image.id),
                tuple(each.columns[n] for n in image.columns),
                tuple(image.before),
                tuple(image.after),
            )
            for image in each.updated
        ]
        found += [
            Image(parts_of(key), each.columns, tuple(before), None) for key, *before in each.deleted
        ]
    return found


def lines_there(images: Sequence[TableImages]) -> dict[Identity, int]:
    """Line of each row that was written."""
    created = {row[1]: row[0] for each in images for row in each.created}
    return created | {row.id: row.line for each in images for row in each.updated}


async def accepted_rows(
    database: Database, uuid: str
) -> AsyncGenerator[tuple[Sequence[str], Sequence[Sequence[Any]]]]:
    """Rows of an import that were put aside, a chunk at a time."""
    journal, imports = spreadsheet_journal.c, spreadsheet_imports.c
    place = tuple_(journal.round, journal.chunk)
    query = (
        select(journal.round, journal.chunk, journal.images)
        .join_from(spreadsheet_journal, spreadsheet_imports, journal.import_id == imports.id)
        .where(imports.uuid == uuid)
        .order_by(journal.round, journal.chunk)
        .limit(1)
    )
    after = (-1, -1)
    while True:
        async with database.reading() as connection:
            chunk = (await connection.execute(query.where(place > after))).one_or_none()
        if chunk is None:
            return
        after = (chunk.round, chunk.chunk)
        for each in unpack(chunk.images):
            table = target_table(each.table)
            columns = [
                _parsed(table, name, [row[place] for row in each.created])
                for place, name in enumerate(each.columns, 2)
            ]
            yield each.columns, list(zip(*columns, strict=True))


def _parsed(table: Table, name: str, values: Sequence[Any]) -> Sequence[Any]:
    if name == OTHER:
        return [None if value is None else from_json(value) for value in values]
    return bulk.parsed(table, name, values)
