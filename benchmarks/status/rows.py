"""Status rows by the million, as PostgreSQL makes them itself."""

import time
from datetime import UTC, datetime

from sqlalchemy import Connection, Table, text

from adapters.database.engine import Database
from adapters.database.models.every import metadata
from adapters.database.models.runs import runs

PER_PROJECT = 1_000
RARE = "rare"
"""A project with ten imports among all others."""
SIZES = {"import_tasks": 1, "transfers": 10, "app.jobs": 10, "rejected_messages": 1_000}
"""Table to how many imports there are for each of its rows."""
_BLOCK = 500_000
_PROBLEMS = (
    '[{"line": 7, "column": "Rate", "value": "cheap", "reason": "no number"},'
    ' {"line": 9, "column": "Code", "reason": "required"}]'
)
_STATE = (
    "CASE WHEN n % 10007 = 0 THEN 'parked' WHEN n % 100003 = 0 THEN 'running' "
    "WHEN n % 997 = 0 THEN 'failed' WHEN n % 101 = 0 THEN 'skipped' ELSE 'completed' END"
)
_MOMENT = "CAST(:newest AS timestamptz) - make_interval(secs => (:rows - n) * :step)"
_IMPORTS = f"""
INSERT INTO import_tasks (project_id, task_id, document_type, state, created, updated, unchanged,
  rejected, deleted, flagged, problem_count, problems, report, filename, workflow_id, created_at,
  started_at, finished_at, updated_at)
SELECT project, task, kind, state, 200, 0, 0, 0, 0, 0, CASE WHEN flawed THEN 2 ELSE 0 END,
  CASE WHEN flawed THEN :problems ELSE '[]' END,
  CASE WHEN flawed THEN '{{"name": "reports/' || task || '.xlsx", "size": 9}}' END,
  initcap(kind) || ' list_' || task || '.xlsx', 'import/' || project || '/' || task, moment, moment,
  CASE WHEN state IN ('parked', 'running') THEN NULL ELSE moment END, moment
FROM (
  SELECT CASE WHEN n % (:rows / 10) = 1 THEN '{RARE}' ELSE 'P' || n % {PER_PROJECT} END AS project,
    'task-' || n AS task, (ARRAY['equipment', 'mto', 'crew', 'material'])[1 + n % 4] AS kind,
    {_STATE} AS state, n % 50 = 0 AS flawed, {_MOMENT} AS moment
  FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS n
) AS made
"""
_TRANSFERS = f"""
INSERT INTO transfers (transfer_id, status, at, source, event_id, account_id, queue, job, run)
SELECT id, CASE WHEN n % 5003 = 0 THEN 'NoAssigned' WHEN n % 499 = 0 THEN 'Failed'
    ELSE 'Succeeded' END,
  {_MOMENT}, 'TMS', 'e-' || n, 'A' || n % 500, 'q' || n % 20, 'orders', 'transfer/' || id || '/job'
FROM (
  SELECT n, encode(sha256(CAST('event ' || n AS bytea)), 'hex') AS id
  FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS n
) AS made
"""
_REJECTED = f"""
INSERT INTO rejected_messages (queue, message_id, reason, description, body, body_sha256, truncated,
  received_at, resubmitted_at)
SELECT 'q' || n % 3, 'm-' || n, 'InvalidMessage', 'service_id: Field required', 'body', 'hash',
  false, {_MOMENT}, CASE WHEN n % 10 > 0 THEN {_MOMENT} END
FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS n
"""
_JOBS = f"""
INSERT INTO app.jobs (job_id, job_type, status, stage, total_stages, parameters, stage_results,
  result_data, attempt, version, project, failed_tasks, failed_count, created_at, updated_at)
SELECT encode(sha256(CAST('job ' || n AS bytea)), 'hex'),
  (ARRAY['process_raster', 'process_vector', 'hello_world'])[1 + n % 3],
  CASE WHEN n % 10007 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, 2, 2, '{{}}', '{{}}', '{{}}', 1, 1,
  CASE WHEN n % (:rows / 10) = 1 THEN '{RARE}' ELSE 'P' || n % {PER_PROJECT} END, '[]', 0,
  {_MOMENT}, {_MOMENT}
FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS n
"""
_INSERTS = {
    "app.jobs": _JOBS,
    "import_tasks": _IMPORTS,
    "transfers": _TRANSFERS,
    "rejected_messages": _REJECTED,
}


async def fill(database: Database, rows: int) -> None:
    """Fill the tables, each over two years up to now, without their indexes."""
    for name, one_in in SIZES.items():
        await _changed(database, metadata.tables[name], are_there=False)
        await _insert(database, name, max(10, rows // one_in))


async def build_indexes(database: Database) -> None:
    """Build what `fill` has left out, and let the planner see the tables."""
    for name in SIZES:
        await _changed(database, metadata.tables[name], are_there=True)
    async with database.reading() as connection:
        for name in (*SIZES, runs.name):
            await connection.exec_driver_sql(f"VACUUM ANALYZE {name}")


async def seconds_of_writing(database: Database, *, followed: bool) -> float:
    """How long the database takes for a written status row, of many at once.

    Args:
        database: With some of them; nothing is kept.
        followed: Whether the table of runs follows.
    """
    trigger = "ENABLE" if followed else "DISABLE"
    async with database.engine.connect() as connection:
        await connection.exec_driver_sql(f"ALTER TABLE import_tasks {trigger} TRIGGER USER")
        began = time.perf_counter()
        done = await connection.exec_driver_sql(_WRITING)
        seconds = time.perf_counter() - began
        await connection.rollback()
    return seconds / done.rowcount


_WRITING = """
UPDATE import_tasks SET updated_at = clock_timestamp()
WHERE task_id IN (SELECT task_id FROM import_tasks LIMIT 20000)
"""


async def _insert(database: Database, name: str, rows: int) -> None:
    step = 2 * 365 * 24 * 3600 / rows
    insert = _INSERTS[name]
    values: dict[str, object] = {"newest": datetime.now(UTC), "rows": rows, "step": step}
    if ":problems" in insert:
        values["problems"] = _PROBLEMS
    for first in range(1, rows + 1, _BLOCK):
        values |= {"first": first, "last": min(rows, first + _BLOCK - 1)}
        async with database.transaction() as connection:
            await connection.execute(text(insert), values)


async def _changed(database: Database, table: Table, *, are_there: bool) -> None:
    def change(connection: Connection) -> None:
        for index in sorted(table.indexes, key=lambda each: str(each.name)):
            if are_there:
                index.create(connection)
            else:
                index.drop(connection)

    async with database.transaction() as connection:
        await connection.run_sync(change)
