"""Records one rejected message for what received it and has no database."""

from temporalio import workflow

from activities.rejections import Rejections
from contracts.rejections import RECORD, Rejection
from workflows import policies
from workflows.waiting import Waiting


@workflow.defn(name=RECORD)
class RejectionRecord:
    """Its start is the promise that the message is recorded: it waits for the database."""

    @workflow.run
    async def run(self, rejection: Rejection) -> None:
        """Record it."""
        await Waiting().done(lambda: _record(rejection))


async def _record(rejection: Rejection) -> None:
    await workflow.execute_activity_method(
        Rejections.record,
        rejection,
        summary=f"record a message of {rejection.queue}"[:200],
        **policies.ANSWER,
    )
