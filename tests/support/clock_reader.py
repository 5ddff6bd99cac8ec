"""A workflow that breaks the rules: it reads the clock of its machine."""

import datetime

from temporalio import workflow


@workflow.defn
class ClockReader:
    """Returns the time of its machine."""

    @workflow.run
    async def run(self) -> str:
        """Read the clock."""
        return datetime.datetime.now(datetime.UTC).isoformat()
