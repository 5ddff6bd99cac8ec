"""The account that owns everything in a cloud in memory."""

from dataclasses import dataclass

from adapters.memory.cloud.functions import MemoryFunctions, MemoryGrants
from adapters.memory.cloud.queues import MemoryQueues, MemoryTopic
from adapters.memory.cloud.state import CloudState


@dataclass
class MemoryCloud(CloudState):
    """The ports of a cloud over one state, which tests may read and change.

    Attributes:
        queues: `BatchQueues`.
        topic: `BatchTopic`.
        functions: `BatchFunctions`.
        grants: `BatchGrants`.
    """

    def __post_init__(self) -> None:
        self.queues = MemoryQueues(self)
        self.topic = MemoryTopic(self)
        self.functions = MemoryFunctions(self)
        self.grants = MemoryGrants(self)
