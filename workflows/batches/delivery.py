"""Proving that what is published reaches the queue of a batch."""

from datetime import timedelta
from typing import Final

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from activities.batches.provisioning import BatchProvisioning
from contracts.batches import DeliveryOrder, ResourceState, StepDone, StepInput
from contracts.errors import PERMANENT
from domain.batches.resources import unproven
from workflows import policies

FIRST_PAUSE: Final = timedelta(seconds=1)
"""Between two looks; it doubles from look to look."""
LONGEST_PAUSE: Final = timedelta(seconds=15)
FIRST_CANARY_PAUSE: Final = timedelta(seconds=2)
"""Until another canary is published, as the one before was lost or its filter policy did not work
yet; it doubles up to the longest pause. Leases of the account are held meanwhile."""


async def prove(work: StepInput) -> StepDone:
    """Publish canaries until enough of them arrive; timers of the run pass between two looks.

    A filter policy may take a quarter of an hour to work, and what is published before is lost:
    publishers are notified only after this is done. Of the time that is given only these pauses
    count: a look that waits for a free worker takes nothing of it.

    Raises:
        ActivityError: A canary cannot be published, or not be looked for.
        ApplicationError: `Permanent` when none has arrived in time.
    """
    pause, left = FIRST_PAUSE, timedelta(seconds=work.delivery)
    number, missing = 0, work.plan.canaries
    until_canary, canary_pause = timedelta(0), FIRST_CANARY_PAUSE
    while True:
        is_due = until_canary <= timedelta(0)
        if is_due:
            number, until_canary = number + 1, canary_pause
            canary_pause = min(2 * canary_pause, LONGEST_PAUSE)
        seen = await workflow.execute_activity_method(
            BatchProvisioning.look_for_delivery,
            DeliveryOrder(
                key=work.key,
                plan=work.plan,
                canary=f"{workflow.info().workflow_id}/{number}",
                send=is_due,
            ),
            summary=f"look for canary {number} of {work.key}",
            **policies.LONG,
        )
        if seen.arrived:
            missing -= 1
            if missing == 0:
                return StepDone(state=ResourceState.READY)
            # The next one at once.
            until_canary = timedelta(0)
            continue
        if not left:
            raise ApplicationError(unproven(work), type=PERMANENT, non_retryable=True)
        pause = min(pause, left)
        await workflow.sleep(pause)
        until_canary -= pause
        pause, left = min(2 * pause, LONGEST_PAUSE), left - pause
