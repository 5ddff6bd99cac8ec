"""The workflow of errands."""

from temporalio import workflow

from workflows.shared import policies
from workflows.shared.errands import ERRAND, ErrandInput, ErrandResult
from workflows.shared.steps import Errands


@workflow.defn(name=ERRAND)
class Errand:
    """Carries one errand out; one that no worker begins in time ends by itself."""

    @workflow.run
    async def run(self, order: ErrandInput) -> ErrandResult:
        """Have it done."""
        return await workflow.execute_activity_method(
            Errands.carry_out,
            order,
            summary=f"{order.kind}, asked by {order.by}"[:200],
            **policies.ERRAND,
        )
