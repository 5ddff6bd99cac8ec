"""Who answered a parked job, as the trail has it."""

import pytest

from tests.support.transfers.events import a_message
from tests.support.transfers.installation import Installation, ended
from tests.support.waiting import eventually
from workers import catalogue
from workers.shared.register import recognise
from workers.shared.services.identity import OPERATOR, Identity
from workers.shared.services.run_actions import AnswerRequest, DefaultServedRuns
from workers.shared.services.runs import TemporalRuns
from workflows.shared.errors import RuleViolation
from workflows.transfers.runs import file_job_id

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_trail_says_who_had_a_job_tried_again(transfers: Installation) -> None:
    raw, id = a_message(id="answered")
    transfers.far.fails["write"] = [RuleViolation("no such folder")]
    await transfers.intake().accept(raw, 0, "m-1")

    async def is_parked() -> bool:
        row = await transfers.store.get(id)
        return row is not None and (row.reason or "").startswith("parked: ")

    await eventually(is_parked)
    run = recognise(catalogue.PIPELINES, file_job_id(id))
    assert run is not None
    served = DefaultServedRuns(TemporalRuns(transfers.client, {}), correction="action")
    ida = Identity("ida", (1,), frozenset({OPERATOR}))
    await served.answer(ida, run, AnswerRequest("retry", by="ida"))
    await ended(transfers, id)
    trail = [(each.reason, each.by) for each in await transfers.store.trail(id)]
    assert ("retry: 2. WriteFile", "ida") in trail
