"""Workflows of `parcels`: weigh, wait for an operator, end."""

from datetime import timedelta

from temporalio import workflow

from tests.sixth.contracts import (
    ParcelAnswer,
    ParcelCount,
    ParcelInput,
    ParcelStatus,
    ParcelWeight,
)
from tests.sixth.steps import ParcelWeighing
from workflows.shared import attributes


@workflow.defn(name="ParcelDelivery")
class ParcelDelivery:
    """One parcel."""

    def __init__(self) -> None:
        self._answered = False

    @workflow.run
    async def run(self, order: ParcelInput) -> ParcelWeight:
        """Weigh the parcel and wait for an operator."""
        weight = await workflow.execute_activity_method(
            ParcelWeighing.weigh, order, start_to_close_timeout=timedelta(seconds=10)
        )
        workflow.upsert_search_attributes(
            attributes.waiting("parked", workflow.now(), attributes.OPERATORS)
        )
        await workflow.wait_condition(lambda: self._answered)
        workflow.upsert_search_attributes(attributes.not_waiting("completed"))
        return weight

    @workflow.update(name="retry")
    async def retry(self, answer: ParcelAnswer) -> None:
        """Let the parcel go."""
        self._answered = True

    @workflow.query(name="status")
    def status(self) -> ParcelStatus:
        """Where it stands."""
        return ParcelStatus(state="completed" if self._answered else "parked")


@workflow.defn(name="ParcelCounting")
class ParcelCounting:
    """Counts by schedule."""

    @workflow.run
    async def run(self, order: ParcelCount) -> None:
        """Nothing to count in a test."""
