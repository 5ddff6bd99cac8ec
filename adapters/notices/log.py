"""Notices where no way to send them is set."""

import logging

from contracts.notices import Notice

logger = logging.getLogger(__name__)


class LogNotices:
    """Writes that a notice was due, without names, addresses and reasons."""

    async def send(self, notice: Notice) -> None:
        """Log what kind of notice is due for which run."""
        logger.info(
            "%s due for %s in state %s (%s); "
            "set DOCFLOW_NOTIFY_WEBHOOK_URL or DOCFLOW_SMTP_URL to have it sent",
            notice.kind,
            notice.workflow_id,
            notice.state,
            notice.id,
        )
