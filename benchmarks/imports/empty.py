"""A workflow that does nothing, in as many steps as an import has."""

from datetime import timedelta

from temporalio import activity, workflow

_SOON = timedelta(minutes=1)


@activity.defn(name="empty.begin")
async def begin(task: str) -> None:
    """Do nothing."""


@activity.defn(name="empty.work")
async def work(task: str) -> None:
    """Do nothing."""


@activity.defn(name="empty.finish")
async def finish(task: str) -> None:
    """Report that one more is done."""
    print("finished", task, flush=True)


@workflow.defn(name="EmptyImport")
class EmptyImport:
    """Three empty local activities, one after another."""

    @workflow.run
    async def run(self, task: str) -> None:
        """Run them."""
        for step in (begin, work, finish):
            await workflow.execute_local_activity(step, task, start_to_close_timeout=_SOON)
