"""What one organisation may bring to a gateway, and what another one still may."""

from datetime import UTC, datetime
from itertools import count

import pytest
from fastapi import FastAPI

from adapters.database.runs import SqlRuns, Usage
from tests.gateway.test_refusals import problem
from tests.support.gateway import (
    GOOD,
    HEADER,
    TAUGHT,
    TAUGHT_EVENT,
    Stack,
    import_in,
    sheet,
    token,
    upload,
    uploaded_files,
)
from tests.support.waiting import eventually
from workers.shared.services.quotas import WINDOW
from workers.shared.settings.quotas import QuotaSettings

pytestmark = pytest.mark.asyncio(loop_scope="session")
OURS = {"contextId": str(TAUGHT_EVENT)}
TIA = token("tia", TAUGHT)
OTHERS = count(101)
EVENT = {"table": "events", "name": "Quiet run", "starts_on": "2026-05-10"}


async def used(stack: Stack) -> Usage:
    """What our organisation uses now; other tests upload for it, too."""
    rows = SqlRuns(stack.resources.database)
    return await rows.usage(TAUGHT, datetime.now(UTC) - WINDOW)


async def another_uploads(stack: Stack, app: FastAPI) -> None:
    """An organisation that has brought nothing so far."""
    async with stack.browser(token("ned", next(OTHERS)), app=app) as ned:
        event = (await ned.post("/api/v1/uploads/contexts", json=EVENT)).json()
        await import_in(ned, "COLUMN_MAPPING", contextId=str(event["id"]))


async def test_an_organisation_has_so_many_runs_in_progress(stack: Stack) -> None:
    before = (await used(stack)).open_runs
    app = stack.gateway(environment={"DOCFLOW_QUOTA_RUNS": f"{before + 1}"})
    async with stack.browser(TIA, app=app) as tia:
        key = {"Idempotency-Key": f"quota {datetime.now(UTC)}"}
        first = await upload(tia, headers=key, **OURS)
        assert first.status_code == 201, first.text
        kept = uploaded_files(stack)
        refused = await upload(tia, **OURS)
        said = problem(refused, 429, "quota-exceeded")
        assert f"organisation {TAUGHT} has {before + 1} runs in progress" in said
        assert "DOCFLOW_QUOTA_RUNS" in said and "cancel one" in said
        assert refused.headers["retry-after"] == "60"
        assert uploaded_files(stack) == kept
        # Nothing new starts: the answer is the import of before.
        assert (await upload(tia, headers=key, **OURS)).status_code == 201
        await another_uploads(stack, app)
        await tia.delete(f"/api/imports/{first.json()['identifier']}")

        async def is_free() -> bool:
            return (await used(stack)).open_runs == before

        await eventually(is_free)
        again = await upload(tia, **OURS)
        assert again.status_code == 201
        await tia.delete(f"/api/imports/{again.json()['identifier']}")


async def test_rows_and_bytes_of_a_day_are_counted(stack: Stack) -> None:
    before, content = await used(stack), sheet(HEADER, *GOOD)
    async with stack.browser(TIA) as tia:
        uuid = await import_in(tia, "COMPLETED", content, autoStart="true", **OURS)
    after = await used(stack)
    assert (after.rows, after.size) == (before.rows + 2, before.size + len(content))
    for name, value in (("ROWS", after.rows), ("BYTES", after.size + len(content) - 1)):
        app = stack.gateway(environment={f"DOCFLOW_QUOTA_{name}": f"{value}"})
        async with stack.browser(TIA, app=app) as tia:
            refused = await upload(tia, content, **OURS)
            said = problem(refused, 429, "quota-exceeded")
            assert f"DOCFLOW_QUOTA_{name} allows {value:,}" in said
            assert 60 < int(refused.headers["retry-after"]) <= WINDOW.total_seconds()
            await another_uploads(stack, app)
            # What is there already goes on.
            assert (await tia.get(f"/api/imports/{uuid}")).status_code == 200


async def test_requests_of_an_organisation_are_counted_together(stack: Stack) -> None:
    quotas = QuotaSettings.read({"DOCFLOW_QUOTA_REQUESTS": "3"})
    app = stack.gateway(quotas=quotas)

    async def asks(bearer: str) -> list[int]:
        async with stack.browser(bearer, app=app) as browser:
            return [(await browser.get("/api/v1/runs")).status_code for _ in range(2)]

    assert await asks(TIA) + await asks(token("theo", TAUGHT)) == [200, 200, 200, 429]
    async with stack.browser(TIA, app=app) as tia:
        refused = await tia.get("/api/v1/runs")
        assert "may send 3 requests a minute" in problem(refused, 429, "quota-exceeded")
        assert 0 < int(refused.headers["retry-after"]) <= 60
    assert await asks(token("anna")) == [200, 200]
    for _ in range(2):
        assert await asks(token("olga", TAUGHT, "operator")) == [200, 200]
