"""Notifies people about a run that waits for them, as earlier releases asked for it."""

from collections.abc import Mapping

from temporalio import activity

from activities.notices import deliver
from adapters.ports import Notifications
from contracts.notices import Notice, NoticeKind, notice_id
from contracts.spreadsheets import Notice as FormerNotice
from domain.notices import NoticePolicies, clean


class SpreadsheetNotices:
    """Sends notices of runs that began to wait before all pipelines shared `notices.send`.

    Args:
        channels: Ways to reach people, by name.
        policies: Who is sent what.
    """

    def __init__(self, channels: Mapping[str, Notifications], policies: NoticePolicies) -> None:
        self._channels, self._policies = channels, policies

    @activity.defn(name="spreadsheets.notify")
    async def notify(self, notice: FormerNotice) -> None:
        """Send one notice.

        A second run sends it again under the same id, by which receivers recognise it as the
        same one. The run's id is part of it, because steps are numbered from 1 in each run.

        Raises:
            ApplicationError: It could not be sent.
        """
        info = activity.info()
        assert info.workflow_id is not None and info.workflow_run_id is not None
        kind, pipeline = NoticeKind(notice.kind), "spreadsheets"
        step = (info.workflow_id, info.workflow_run_id, kind, info.activity_id)
        sent = Notice(
            id=notice_id(*step),
            kind=kind,
            pipeline=pipeline,
            workflow_id=info.workflow_id,
            run_id=info.workflow_run_id,
            at=info.current_attempt_scheduled_time,
            title=clean(notice.filename, 300),
            state=notice.state,
            reason=clean(notice.open, 2_000),
            link=notice.link,
            recipients=self._policies.recipients(pipeline, kind, notice.notify),
            waiting_since=notice.waiting_since,
            assignee=notice.assignee,
            notify=notice.notify,
            about={
                "uuid": notice.uuid,
                "organisation_id": notice.organisation_id,
                "import_type": notice.import_type,
                "filename": notice.filename,
                "open": notice.open,
            },
        )
        if kind in self._policies.of(pipeline).kinds:
            await deliver(self._channels, sent)
