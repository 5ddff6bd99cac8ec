"""What an import has changed in a table of a team, taken back."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from adapters.database.engine import Database
from adapters.database.foreign_rows import Image, unpack_images
from adapters.database.foreign_undo import TakenBack
from adapters.database.models.imports import FINAL, import_tasks
from adapters.database.models.types import target_images, type_versions
from adapters.ports.errors import PortError
from adapters.types.tables import declared_of
from adapters.types.targets import TargetTables
from workflows.imports.messages import workflow_id
from workflows.imports.runs import TaskKey
from workflows.shared.declared_types import DeclaredType
from workflows.shared.errors import RuleViolation


async def taken_back(database: Database, targets: TargetTables, key: TaskKey) -> TakenBack:
    """Undo what an import has changed, the newest change first.

    Rows that were changed since stay as they are. What was done once is not done again: docflow
    forgets the changes with it, and a crash in between doubles nothing.

    Raises:
        RuleViolation: The import has not ended, or nothing of it can be taken back.
        Denied: The table is not what the type said.
        Unavailable: A database is unavailable or busy.
    """
    run, images, tasks = workflow_id(key.project_id, key.task_id), target_images.c, import_tasks.c
    done, forgotten = TakenBack(), list[tuple[DeclaredType, str]]()
    async with targets.turns, database.transaction() as connection:
        own = select(tasks.state).where(
            tasks.project_id == key.project_id, tasks.task_id == key.task_id
        )
        state = (await connection.execute(own.with_for_update())).scalar_one_or_none()
        if state is not None and state not in [each.value for each in FINAL]:
            raise RuleViolation(f"{run} is {state}; end it first")
        query = (
            select(images.id, images.work, images.step, type_versions.c.declaration)
            .join_from(target_images, type_versions, type_versions.c.digest == images.digest)
            .where(images.run == run)
            .order_by(images.id.desc())
        )
        rows = (await connection.execute(query.with_for_update(of=target_images))).all()
        async with aclosing(_changes(connection, targets, rows)) as changes:
            async for declared, work, id, changed in changes:
                step = f"{run}/undo/{id}"
                done.add(await targets.take_back(declared, step, changed))
                forgotten += [(declared, step), (declared, work)]
        if not forgotten:
            raise RuleViolation(
                f"{run} has changed nothing in a table of yours that docflow still remembers"
            )
        await connection.execute(delete(target_images).where(images.run == run))
    for declared, step in dict.fromkeys(forgotten):
        with suppress(PortError):
            await targets.forget(declared, step)
    return done


async def _changes(
    connection: AsyncConnection, targets: TargetTables, rows: Sequence[Any]
) -> AsyncGenerator[tuple[DeclaredType, str, str, Sequence[Image]]]:
    """Type, work, id and images of each block, the newest first; one block at a time.

    The last step of work that has not ended may be known in the database of the team alone: its
    process died before docflow could note it.
    """
    for work, found in groupby(rows, attrgetter("work")):
        begun, noted = list[Any](), list[Any]()
        for each in found:
            (begun if each.step is None else noted).append(each)
        for each in begun:
            declared, steps = declared_of(each.declaration), {block.step for block in noted}
            for name, packed in (await targets.remembered(declared, work)).items():
                for place, block in enumerate(reversed(packed) if name not in steps else ()):
                    id = f"{each.id}/{place}" if place else str(each.id)
                    yield declared, work, id, unpack_images(block)
        for each in noted:
            query = select(target_images.c.images).where(target_images.c.id == each.id)
            images = unpack_images((await connection.execute(query)).scalar_one())
            yield declared_of(each.declaration), work, str(each.id), images
