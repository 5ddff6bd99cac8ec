"""Notices where no way to send them is set."""

import logging

from contracts.spreadsheets import Notice

logger = logging.getLogger(__name__)


class LogNotices:
    """Writes that a notice was due, without names, addresses and file names."""

    async def send(self, notice: Notice, key: str) -> None:
        """Log what kind of notice is due for which import; the key names it in full."""
        logger.info(
            "%s due for spreadsheet import %s of organisation %d in state %s (%s); "
            "set DOCFLOW_NOTIFY_WEBHOOK_URL or DOCFLOW_SMTP_URL to have it sent",
            notice.kind,
            notice.uuid,
            notice.organisation_id,
            notice.state,
            key,
        )
