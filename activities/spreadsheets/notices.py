"""Notifies people about a run that waits for them."""

from temporalio import activity

from activities.failures import translate_failures
from adapters.ports import Notifications
from contracts.spreadsheets import Notice


class SpreadsheetNotices:
    """Sends notices.

    Args:
        notifications: How people are reached.
    """

    def __init__(self, notifications: Notifications) -> None:
        self._notifications = notifications

    @activity.defn(name="spreadsheets.notify")
    @translate_failures
    async def notify(self, notice: Notice) -> None:
        """Send one notice.

        A second run sends it again under the same key, by which receivers recognise it as the
        same one. The run's id is part of it, because steps are numbered from 1 in each run.
        """
        info = activity.info()
        step = (info.workflow_id, info.workflow_run_id, notice.kind, info.activity_id)
        await self._notifications.send(notice, "/".join(str(part) for part in step))
