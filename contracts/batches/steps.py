"""What the steps that make and remove the resources of a batch are given, and what they did."""

from datetime import datetime
from typing import Annotated

from pydantic import Field, StringConstraints

from contracts.base import Contract
from contracts.batches.names import BatchKey
from contracts.batches.plans import BatchPlan
from contracts.batches.states import Resource, ResourceState

CloudName = Annotated[str, StringConstraints(pattern=r"^[!-~]+$", max_length=512)]
"""An ARN, or what another cloud has in its place."""


class ResourceRow(Contract):
    """One line of the table that a run shows."""

    resource: Resource
    state: ResourceState
    since: datetime | None = None
    """When it came into this state; None: a release that kept no times noted it."""
    name: CloudName | None = None
    """What the cloud calls it, where that does not follow from the batch."""


class StepInput(Contract):
    """What every step of provisioning and teardown is given."""

    key: BatchKey
    plan: BatchPlan
    keep_dead_letters: bool = True
    """A dead-letter queue that is not empty stays."""
    delivery: int = 15 * 60
    """Seconds that the filter policy may take to work."""
    subscription: CloudName | None = None
    """Where it is looked whether everything is there; None: the subscription is not looked for."""


class DeliveryOrder(Contract):
    """One look for a canary."""

    key: BatchKey
    plan: BatchPlan
    canary: Annotated[str, Field(max_length=200)]
    """Its message id."""
    send: bool
    """It is published first."""


class DeliverySeen(Contract):
    """What the look found."""

    arrived: bool


class StepDone(Contract):
    """What a step did to its resource."""

    state: ResourceState
    note: Annotated[str, Field(max_length=500)] | None = None
    name: CloudName | None = None
    """What the cloud calls what was made, where that does not follow from the batch."""
