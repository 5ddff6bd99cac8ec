"""How long an import waits for people, and what it does meanwhile."""

from datetime import timedelta
from typing import Any

import pytest
from temporalio.api.sdk.v1 import WorkflowMetadata

from tests.support.spreadsheets.runs import (
    ANN,
    S,
    SpreadsheetRuns,
    columns,
    send_update,
    waits_in,
)
from tests.support.spreadsheets.scripted import (
    UNMATCHED,
    ScriptedSpreadsheet,
    spreadsheet_order,
    transient,
)
from tests.support.waiting import eventually
from workflows.spreadsheets.mappings import ColumnDecision
from workflows.spreadsheets.runs import Patience

pytestmark = pytest.mark.asyncio(loop_scope="session")

MONTHLY = Patience(remind_every=30 * 24 * 3600)
"""The server takes a second for every timer that it skips to."""


async def test_an_import_reminds_then_escalates_then_is_cancelled(
    spreadsheets: SpreadsheetRuns, server: Any
) -> None:
    script = ScriptedSpreadsheet(columns=UNMATCHED)
    order = spreadsheet_order(notify="ann@example.org", patience=MONTHLY, notices=True)
    async with spreadsheets.running(script, order) as handle:

        async def reported(after: timedelta, count: int) -> list[str]:
            async def all_are_sent() -> bool:
                return len(script.notices) >= count

            await server.skip(handle, after)
            await eventually(all_are_sent)
            return [notice.kind for notice in script.notices]

        await waits_in(handle, S.COLUMN_MAPPING)
        assert await reported(timedelta(days=2, hours=23), 1) == ["needs-you"]
        assert await reported(timedelta(hours=2), 2) == ["needs-you", "reminder"]
        assert (await reported(timedelta(days=11), 3))[2:] == ["escalation"]
        assert (await reported(timedelta(days=19), 4))[3:] == ["reminder"]
        notice = script.notices[1]
        assert (notice.assignee, notice.notify) == ("ann", "ann@example.org")
        assert "Last name" in notice.reason and notice.about["open"] == notice.reason
        assert notice.gives_up_at is not None and notice.waiting_since is not None
        assert notice.gives_up_at - notice.waiting_since == timedelta(days=90)
        assert [step.command.split()[2] for step in notice.steps] == ["columns", "confirm"]
        assert len({notice.id for notice in script.notices}) == 4
        # Whoever does something has the whole time again.
        await send_update(
            handle, "update_column_mappings", columns(ColumnDecision(id=3, ignore=True))
        )
        await server.skip(handle, timedelta(days=2, hours=23))
        assert len(script.notices) == 4
        await server.skip(handle, timedelta(days=88))
        result = await handle.result()
    assert result.state is S.CANCELLED
    assert result.reason == "no answer for 90 days"
    script.check_legal()


async def test_an_import_that_reminds_rarely_reminds_twice_before_it_is_cancelled(
    spreadsheets: SpreadsheetRuns, server: Any
) -> None:
    days = 24 * 3600
    rarely = Patience(remind_after=200 * days, escalate_after=200 * days, abandon_after=100 * days)
    script = ScriptedSpreadsheet(columns=UNMATCHED)
    async with spreadsheets.running(
        script, spreadsheet_order(patience=rarely, notices=True)
    ) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)

        async def sent(count: int) -> None:
            async def are_sent() -> bool:
                return len(script.notices) == count

            await eventually(are_sent)

        for after, count in ((49, 1), (2, 2), (38, 2), (2, 3)):
            await server.skip(handle, timedelta(days=after))
            await sent(count)
        await server.skip(handle, timedelta(days=10))
        assert (await handle.result()).state is S.CANCELLED
    assert [notice.kind for notice in script.notices] == ["needs-you", "reminder", "reminder"]


async def test_an_answer_after_months_is_taken(spreadsheets: SpreadsheetRuns, server: Any) -> None:
    order = spreadsheet_order(patience=MONTHLY)
    async with spreadsheets.running(ScriptedSpreadsheet(), order) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await server.skip(handle, timedelta(days=88))
        await send_update(handle, "start", ANN)
        assert (await handle.result()).state is S.COMPLETED


async def test_a_notice_that_cannot_be_sent_stops_nothing_and_is_shown(
    spreadsheets: SpreadsheetRuns, server: Any
) -> None:
    script = ScriptedSpreadsheet(fails={"send": [transient("no mail server")] * 2})
    async with spreadsheets.running(script, spreadsheet_order(notices=True)) as handle:
        await waits_in(handle, S.COLUMN_MAPPING)
        await server.skip(handle, timedelta(days=4))

        async def are_refused() -> bool:
            found = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
            is_shown = "the notice `reminder` was not sent: no mail server" in found.current_details
            return is_shown and len(script.notices) == 2

        await eventually(are_refused)
        await send_update(handle, "start", ANN)
        assert (await handle.result()).state is S.COMPLETED
