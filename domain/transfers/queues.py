"""Queues: who carries out which jobs, how many at once, and how fast.

They are data, `config/queues.yaml`.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import Field, TypeAdapter, ValidationError

from contracts.base import Contract, problem_text
from contracts.transfers import QueueName, queue_task_queue
from domain.errors import RuleViolation
from domain.transfers.plain_lists import read_lists

_HEAD: Final = "queues"


class Queue(Contract):
    """One queue."""

    name: QueueName
    handler: str = Field(max_length=100)
    """What carried out its jobs in the system that docflow replaces."""
    description: str = Field(default="", max_length=500)
    slots: int = Field(default=4, ge=1, le=1_000)
    """Actions at once in one worker."""
    rate_per_second: float | None = Field(default=None, gt=0, le=100_000)
    """Actions that all workers together begin; None: as many as they can."""
    priority: int = Field(default=3, ge=1, le=5)
    """Of its jobs where they share something with those of others: 1 comes first."""

    @property
    def task_queue(self) -> str:
        """Of Temporal."""
        return queue_task_queue(self.name)


_QUEUES: Final[TypeAdapter[list[Queue]]] = TypeAdapter(list[Queue])


def read_queues(text: str) -> Mapping[str, Queue]:
    """Read the file.

    Returns:
        Name to queue, in the order of the file.

    Raises:
        RuleViolation: It cannot be read, or names a queue twice; the message says where.
    """
    try:
        items = read_lists(text, {_HEAD: tuple(Queue.model_fields)})[_HEAD]
        found = _QUEUES.validate_python(items)
    except ValidationError as error:
        each = error.errors(include_url=False, include_input=False)[0]
        number, *field = each["loc"]
        where = ".".join(map(str, field)) or "it"
        raise RuleViolation(f"queue {int(number) + 1}: {where}: {problem_text(each)}") from error
    queues = {queue.name: queue for queue in found}
    if len(queues) < len(found):
        names = [queue.name for queue in found]
        twice = next(name for name in names if names.count(name) > 1)
        raise RuleViolation(f"there are two queues {twice}")
    if not queues:
        raise RuleViolation("there is no queue")
    return queues
