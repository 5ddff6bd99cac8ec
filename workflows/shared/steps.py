"""Steps of every pipeline as workflows call them; `activities.shared` carries them out."""

from temporalio import activity

from workflows.shared.dependencies import Recovery, WaitInput
from workflows.shared.errands import ErrandInput, ErrandResult
from workflows.shared.notifications import NotificationInput, NotificationReceipt
from workflows.shared.records import (
    Rejection,
    RowRetentionInput,
    RowRetentionResult,
    RunsSwept,
    RunSweepInput,
)
from workflows.shared.run_webhooks import RunsTold, RunWebhooksInput


class Dependencies:
    """Answers runs that wait for a dependency; one object for everything in a process."""

    @activity.defn(name="dependencies.wait")
    async def wait(self, awaited: WaitInput) -> Recovery: ...


class Errands:
    """Does what people ask of a pipeline's worker."""

    @activity.defn(name="errands.carry_out")
    async def carry_out(self, order: ErrandInput) -> ErrandResult: ...


class NotificationSending:
    """Sends what the policy of a run's pipeline wants sent; one object for a process."""

    @activity.defn(name="notices.send")
    async def send(self, order: NotificationInput) -> NotificationReceipt: ...


class Rejections:
    """Records rejected messages."""

    @activity.defn(name="rejections.record")
    async def record(self, rejection: Rejection) -> None: ...


class RowRemoval:
    """Removes rows whose time is over, and the blobs that only they name."""

    @activity.defn(name="rows.remove_old")
    async def remove_old(self, order: RowRetentionInput) -> RowRetentionResult: ...


class RunSweep:
    """Finds rows whose run is over, and closes them."""

    @activity.defn(name="runs.sweep")
    async def sweep(self, order: RunSweepInput) -> RunsSwept: ...


class RunWebhooks:
    """Tells receivers what has become of runs."""

    @activity.defn(name="runs.tell")
    async def tell(self, order: RunWebhooksInput) -> RunsTold: ...
