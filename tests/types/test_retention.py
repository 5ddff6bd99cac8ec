"""Rows of declared types are removed once no import has updated them for long."""

import pytest

from activities.imports.views import old_of_types
from activities.shared.records import RowRemoval
from adapters.types.files import read_type
from tests.support.imports.activities import environment
from tests.types.conftest import Installation
from workflows.shared.errors import RuleViolation
from workflows.shared.records import RemovedRows, RowRetentionInput

TYPE = """
name: readings
title: Readings
key: [meter]
fields:
  meter: {kind: code, required: true}
"""


async def test_rows_go_after_the_retention_of_their_type(installation: Installation) -> None:
    for_ever = read_type(TYPE, "readings.yaml")
    await installation.types.apply(for_ever)
    await installation.imported("readings", b"meter\nA\nB\nC\n")
    await installation.run_sql(
        "UPDATE docflow_types.readings SET updated_at = now() - INTERVAL '10 days'"
        " WHERE meter <> 'C'"
    )
    database, blobs = installation.database, installation.ports.blobs
    removal = RowRemoval({"imports": lambda: old_of_types(database)}, blobs)

    async def removed(*, dry_run: bool = False) -> tuple[RemovedRows, ...]:
        order = RowRetentionInput(pipeline="imports", dry_run=dry_run, page=1)
        return (await environment().run(removal.remove_old, order)).kinds

    assert await removed() == ()
    kept = read_type(TYPE + "retention: 9 days\n", "readings.yaml")
    [plan] = await installation.types.plan(kept)
    assert plan.losses == ["2 stored rows, last updated more than 9 days ago"]
    with pytest.raises(RuleViolation, match="--allow-loss"):
        await installation.types.apply(kept)
    await installation.types.apply(kept, allow_loss=True)
    what = RemovedRows(what="rows of the type readings", days=9)
    counted = what.model_copy(update={"rows": 2})
    assert await removed(dry_run=True) == await removed() == (counted,)
    assert await removed() == (what,)
    assert await installation.rows(kept, "meter") == [("C",)]
    [plan] = await installation.types.apply(for_ever)
    assert [change.sql for change in plan.changes] == [
        "DROP INDEX docflow_types.ix_readings_updated_at"
    ]
