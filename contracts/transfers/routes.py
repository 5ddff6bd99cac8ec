"""Rules that say which queue takes an event."""

from datetime import datetime
from typing import Final

from pydantic import Field

from contracts.answers import Person
from contracts.base import Contract
from contracts.transfers.events import Attribute
from contracts.transfers.names import QueueName, RuleName, Sentence

ANY: Final = "*"
"""In an attribute of a rule: any characters, or none."""


class RouteRule(Contract):
    """One row of `jobconfig`: `PartitionKey` is the queue, `RowKey` the rule."""

    queue: QueueName
    rule: RuleName
    account_id: Attribute = ANY
    source: Attribute = ANY
    type: Attribute = ANY
    subject: Attribute = ANY
    priority: int = Field(default=0, ge=-1_000, le=1_000)
    """The highest wins; among equal ones the most specific."""
    enabled: bool = True
    by: Person | None = None
    """Who changed it last."""
    changed_at: datetime | None = None


class RouteRemark(Contract):
    """Why a rule did not take an event."""

    queue: QueueName
    rule: RuleName
    reason: Sentence


class RouteVerdict(Contract):
    """What the rules say about an event."""

    winner: RouteRule | None = None
    others: tuple[RouteRemark, ...] = Field(default=(), max_length=10)
    """The nearest of the others, each with its reason."""
    rules: int = 0
    """How many there were."""
