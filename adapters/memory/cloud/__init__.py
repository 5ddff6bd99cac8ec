"""A cloud in memory, for tests: queues, a topic, functions and grants over one state."""

from adapters.memory.cloud.account import MemoryCloud
from adapters.memory.cloud.state import ROLE, DeadLetter, MemoryFunction, MemoryQueue

__all__ = ["ROLE", "DeadLetter", "MemoryCloud", "MemoryFunction", "MemoryQueue"]
