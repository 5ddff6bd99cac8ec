"""Who answered a parked job, as the trail has it."""

import pytest

from tests.support.cli import run_docflow_in_thread
from tests.support.transfers.events import a_message
from tests.support.transfers.installation import Installation, ended
from tests.support.waiting import eventually
from workers.shared.cli.context import CliContext
from workers.shared.services.identity import acting_user
from workflows.shared.errors import RuleViolation
from workflows.transfers.runs import file_job_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize(("user", "by"), [({"USER": "ida"}, "ida"), ({}, acting_user({}))])
async def test_the_trail_says_who_had_a_job_tried_again(
    transfers: Installation,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    user: dict[str, str],
    by: str,
) -> None:
    address = transfers.client.service_client.config.target_host
    monkeypatch.setenv("TEMPORAL_ADDRESS", address)
    raw, id = a_message(id=f"answered by {by}")
    transfers.far.fails["write"] = [RuleViolation("no such folder")]
    await transfers.intake().accept(raw, 0, "m-1")

    async def is_parked() -> bool:
        row = await transfers.store.get(id)
        return row is not None and (row.reason or "").startswith("parked: ")

    await eventually(is_parked)
    context = CliContext({"DATABASE_URL": database_url, "TEMPORAL_ADDRESS": address, **user})
    done = await run_docflow_in_thread("retry", file_job_id(id), context=context)
    assert done.exit_code == 0, done.output
    await ended(transfers, id)
    trail = [(each.reason, each.by) for each in await transfers.store.trail(id)]
    assert ("retry: 2. WriteFile", by) in trail
