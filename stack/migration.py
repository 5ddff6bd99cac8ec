"""`make migration NAME=tools`: what leads from the newest migration to the models."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any, Final, Literal

from alembic.autogenerate import produce_migrations, render_python_code
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection

from adapters.database.engine import open_database
from adapters.database.models.base import Box, ExactDecimal, UtcDateTime
from adapters.database.models.every import metadata
from adapters.database.models.runs import FOLLOWED, is_followed, trigger_of
from adapters.database.schema import MIGRATIONS, revisions, upgrade
from stack.postgres import postgres_server

_FILE: Final = '''"""{title}."""

import sqlalchemy as sa
from alembic import op
{imports}
revision = "{revision}"
down_revision = "{before}"


def upgrade() -> None:
    {body}
'''
_IMPORTS: Final = {
    "JSONB(": "from sqlalchemy.dialects.postgresql import JSONB\n",
    "Box(": "\nfrom adapters.database.models.base import Box\n",
}


def write_migration(name: str) -> Path:
    """Write the migration; read it before it is committed.

    Args:
        name: Lower-case words with `_` between them.

    Raises:
        ValueError: The models differ in nothing from the newest migration.
    """
    before = revisions()[-1]
    revision = f"{int(before) + 1:04}"
    with postgres_server() as url:
        body = asyncio.run(_difference(url))
    if body == "pass":
        raise ValueError("the newest migration leads to the models: there is nothing to write")
    content = _FILE.format(
        title=name.replace("_", " ").capitalize(),
        imports="".join(line for name, line in _IMPORTS.items() if name in body),
        revision=revision,
        before=before,
        body=body,
    )
    file = MIGRATIONS / "versions" / f"{revision}_{name}.py"
    file.write_text(content, encoding="utf-8")
    return file


async def _difference(url: str) -> str:
    await upgrade(url)
    async with open_database(url) as database, database.transaction() as connection:
        return await connection.run_sync(_rendered)


def _rendered(connection: Connection) -> str:
    options = {"include_schemas": True, "include_name": _is_ours, "compare_type": True}
    context = MigrationContext.configure(connection, opts=options)
    operations = produce_migrations(context, metadata).upgrade_ops
    assert operations is not None
    code = render_python_code(operations, render_item=_type, migration_context=context)
    code = re.sub(r"op\.f\(('[^']*')\)", r"\1", code)
    code = code.replace("postgresql.JSONB(astext_type=sa.Text())", "JSONB()")
    lines = [line for line in code.splitlines() if "###" not in line]
    changed = [table for table in FOLLOWED if not is_followed(connection, table)]
    for statement in (each for table in changed for each in trigger_of(table)):
        lines += [f"    op.get_bind().exec_driver_sql({statement!r})"]
    body = "\n".join(lines).strip()
    return body.removeprefix("pass").strip() or "pass"


def _is_ours(name: str | None, kind: str, _parents: object) -> bool:
    return kind != "schema" or name in {table.schema for table in metadata.tables.values()}


def _type(kind: str, item: object, _context: Any) -> str | Literal[False]:
    """How the types of ours are written; False: Alembic knows."""
    if kind != "type":
        return False
    match item:
        case UtcDateTime():
            return "sa.DateTime(timezone=True)"
        case Box():
            return "Box()"
        case ExactDecimal():
            return "sa.Numeric(20, 6)"
        case _:
            return False


if __name__ == "__main__":
    try:
        print(write_migration(sys.argv[1]))
    except ValueError as error:
        sys.exit(str(error))
