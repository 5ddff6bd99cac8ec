"""A workflow that does nothing, in as many steps as the import of a small document has."""

from datetime import timedelta

from temporalio import activity, workflow

_SOON = timedelta(minutes=1)


@activity.defn(name="empty.work")
async def work(task: str) -> None:
    """Report that one more is done."""
    print("finished", task, flush=True)


@workflow.defn(name="EmptyImport")
class EmptyImport:
    """One empty local activity."""

    @workflow.run
    async def run(self, task: str) -> None:
        """Run it."""
        await workflow.execute_local_activity(work, task, start_to_close_timeout=_SOON)
