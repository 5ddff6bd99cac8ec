"""How long an import waits for people, and what it does meanwhile."""

from datetime import timedelta
from typing import Any

import pytest

from contracts.spreadsheets import ColumnDecision, Patience
from tests.support.spreadsheets.runs import (
    ANN,
    S,
    SpreadsheetRuns,
    columns,
    tell,
    waits_in,
    was_called,
)
from tests.support.spreadsheets.scripted import (
    UNMATCHED,
    ScriptedSpreadsheet,
    spreadsheet_order,
    transient,
)
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="session")

MONTHLY = Patience(remind_every=30 * 24 * 3600)
"""The server takes a second for every timer that it skips to."""


async def test_an_import_reminds_then_escalates_then_is_cancelled(
    spreadsheets: SpreadsheetRuns, server: Any
) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED)
    order = spreadsheet_order(notify="ann@example.org", patience=MONTHLY)
    async with spreadsheets.running(script, order) as handle:

        async def told(after: timedelta, count: int) -> list[str]:
            async def all_are_sent() -> bool:
                return len(script.notices) >= count

            await server.skip(handle, after)
            await eventually(all_are_sent)
            return [notice.kind for notice in script.notices]

        await waits_in(handle, S.COLUMN_MAPPING)
        await server.skip(handle, timedelta(days=2, hours=23))
        assert script.notices == []
        assert await told(timedelta(hours=2), 1) == ["reminder"]
        assert await told(timedelta(days=11), 2) == ["reminder", "escalation"]
        assert (await told(timedelta(days=19), 3))[2:] == ["reminder"]
        notice = script.notices[0]
        assert (notice.assignee, notice.notify) == ("ann", "ann@example.org")
        assert "LAST_NAME" in notice.open
        # Whoever does something has the whole time again.
        await tell(handle, "update_column_mappings", columns(ColumnDecision(id=3, ignore=True)))
        await server.skip(handle, timedelta(days=2, hours=23))
        assert len(script.notices) == 3
        await server.skip(handle, timedelta(days=88))
        result = await handle.result()
    assert result.state is S.CANCELLED
    assert result.reason == "no answer for 90 days"
    assert script.notices[-1].kind == "abandoned"
    script.check_legal()


async def test_an_answer_after_months_is_taken(spreadsheets: SpreadsheetRuns, server: Any) -> None:
    order = spreadsheet_order(patience=MONTHLY)
    async with spreadsheets.running(ScriptedSpreadsheet(), order) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await server.skip(handle, timedelta(days=88))
        await tell(handle, "start", ANN)
        assert (await handle.result()).state is S.COMPLETED


async def test_a_reminder_that_cannot_be_sent_stops_nothing(
    spreadsheets: SpreadsheetRuns, server: Any
) -> None:
    script = ScriptedSpreadsheet(fails={"notify": [transient("no mail server")]})
    async with spreadsheets.running(script, spreadsheet_order()) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await server.skip(handle, timedelta(days=4))
        await was_called(script, "notify")
        await tell(handle, "start", ANN)
        assert (await handle.result()).state is S.COMPLETED
