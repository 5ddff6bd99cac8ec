"""What `docflow status` shows of a pipeline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Check:
    """One part of the installation."""

    part: str
    up: bool
    says: str


@dataclass(frozen=True)
class PipelineView:
    """What Temporal knows of a pipeline."""

    workers: int
    """How many poll its task queue."""
    open: int
    """Runs that have not ended."""
    waiting: int
    """Those that wait for a person: what the inbox shows of the pipeline."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Runs by state, most urgent first, within Temporal's retention."""
    lanes: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many workers poll each further task queue, by the name of the lane."""

    @property
    def idle_lanes(self) -> Sequence[str]:
        """Lanes that no worker polls: their tasks wait."""
        return [name for name, workers in self.lanes.items() if not workers]
