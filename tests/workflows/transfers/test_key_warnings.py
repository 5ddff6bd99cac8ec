"""People are told once of each key that expires."""

from datetime import UTC, datetime
from typing import Any

from activities.shared.notifications import NotificationSending
from activities.transfers.watches import KeyExpiry
from tests.support.scripted import scripted
from tests.support.waiting import eventually
from workflows.shared.notifications import NotificationKind, NotificationReceipt
from workflows.shared.run_notifications import NoticeDelivery
from workflows.transfers.runs import KeyWarning, KeyWarnings, KeyWarningsInput
from workflows.transfers.scheduled import PartnerKeyWarnings

WARNING = KeyWarning(
    partner="acme",
    key="host key SHA256:abc",
    ends=datetime(2026, 3, 9, tzinfo=UTC),
    step=7,
    sentence="host key SHA256:abc of acme expires on 2026-03-09",
)


async def test_a_key_causes_one_notice_for_each_step(server: Any, run_worker: Any) -> None:
    steps = [(WARNING,), (WARNING,), (WARNING.model_copy(update={"step": 0}),)]
    script = scripted(
        KeyExpiry,
        NotificationSending,
        results={
            "expiring_keys": lambda order: KeyWarnings(warnings=steps[0][order.skip :]),
            "send": NotificationReceipt(),
        },
    )
    workflows = [PartnerKeyWarnings, NoticeDelivery]
    async with run_worker("keys", workflows, script.activities()):
        for day in range(3):
            await server.client.execute_workflow(
                PartnerKeyWarnings.run, KeyWarningsInput(), id=f"day-{day}", task_queue="keys"
            )
            sent = 1 if day < 2 else 2

            async def reported(sent: int = sent) -> bool:
                return len(script.notices) == sent

            await eventually(reported)
            steps.pop(0)
    first, second = script.notices
    assert (first.kind, first.reason) == (NotificationKind.NEEDS_YOU, WARNING.sentence)
    assert first.id != second.id
