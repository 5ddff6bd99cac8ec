"""How runs ended, in memory, for tests and benchmarks."""

from adapters.ports.records import RunEnd


class MemoryRuns:
    """Runs of which only the ends are set; all others are open.

    Attributes:
        ends: Workflow id to the end of its newest run.
    """

    def __init__(self) -> None:
        self.ends: dict[str, RunEnd] = {}

    async def end(self, workflow_id: str) -> RunEnd | None:
        """How the newest run of an id ended; None: it is open."""
        return self.ends.get(workflow_id)
