"""Notices as mails."""

import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Final

import aiosmtplib

from adapters.log_notifications import MailServer, body_of, check_address, logger, subject_of
from adapters.ports.errors import PortError, Unavailable
from workflows.shared.notifications import Notification

SMTP_TIMEOUT_SECONDS: Final = 30.0
"""For each answer of the server."""


class SmtpNotifications:
    """Sends notices as plain text.

    Args:
        server: Where mail is handed in.
        sender: Address that mail comes from.
        tls: Takes the place of the system's certificates.
        timeout: Seconds for each answer of the server.
    """

    def __init__(
        self,
        server: MailServer,
        sender: str,
        *,
        tls: ssl.SSLContext | None = None,
        timeout: float = SMTP_TIMEOUT_SECONDS,
    ) -> None:
        self._server = server
        self._sender = sender
        self._tls = tls
        self._timeout = timeout

    async def send(self, notice: Notification) -> None:
        """Send one notice; one without recipients is logged.

        Raises:
            Unavailable: The server is unavailable, or may accept the notice later.
            PortError: The server refuses it.
        """
        recipients = _addresses(notice)
        if not recipients:
            logger.warning(
                "%s of %s has no recipient; set DOCFLOW_ESCALATE_TO or DOCFLOW_NOTIFY_POLICY",
                notice.kind,
                notice.workflow_id,
            )
            return
        message = _compose(notice, self._sender, recipients)
        try:
            await self._deliver(message, recipients)
        except aiosmtplib.SMTPResponseException as error:
            raise self._refused([error.code]) from error
        except aiosmtplib.SMTPRecipientsRefused as error:
            raise self._refused([one.code for one in error.recipients]) from error
        except (aiosmtplib.SMTPServerDisconnected, OSError) as error:
            raise Unavailable(
                f"the mail server {self._place} cannot be used: {type(error).__name__}"
            ) from error
        except aiosmtplib.SMTPException as error:
            raise PortError(
                f"the mail server {self._place} lacks what DOCFLOW_SMTP_URL asks for, "
                f"STARTTLS or a login: {type(error).__name__}"
            ) from error

    async def _deliver(self, message: EmailMessage, recipients: Sequence[str]) -> None:
        server = self._server
        refused, _ = await aiosmtplib.send(
            message,
            sender=self._sender,
            recipients=recipients,
            hostname=server.host,
            port=server.port,
            username=server.user,
            password=server.password,
            use_tls=server.security == "smtps",
            start_tls=server.security == "smtp+starttls",
            tls_context=self._tls,
            timeout=self._timeout,
        )
        if refused:
            # Those who got it would get it again from another attempt.
            logger.warning(
                "the mail server %s refused %d of %d recipients",
                self._place,
                len(refused),
                len(recipients),
            )

    def _refused(self, codes: Sequence[int]) -> PortError:
        # The server's own words name people.
        summary = (
            f"the mail server {self._place} answered {', '.join(map(str, sorted(set(codes))))}"
        )
        if codes and all(400 <= code < 500 for code in codes):
            return Unavailable(summary)
        return PortError(f"{summary}; are DOCFLOW_SMTP_URL and DOCFLOW_NOTIFY_FROM right?")

    @property
    def _place(self) -> str:
        return f"{self._server.host}:{self._server.port}"


def _addresses(notice: Notification) -> Sequence[str]:
    found: list[str] = []
    for address in notice.recipients:
        try:
            found.append(check_address(address))
        except ValueError:
            logger.warning("a notice of %s names no mail address", notice.workflow_id)
    return found


def _compose(notice: Notification, sender: str, recipients: Sequence[str]) -> EmailMessage:
    message = EmailMessage(policy=SMTP)
    message["From"] = Address(addr_spec=sender)
    message["To"] = [Address(addr_spec=address) for address in recipients]
    message["Subject"] = subject_of(notice)
    message["Date"] = datetime.now(UTC)
    # The same for every attempt, so that mail programs show one mail.
    message["Message-ID"] = f"<{notice.id}@{sender.rpartition('@')[2]}>"
    # Programs that answer by themselves leave this mail alone (RFC 3834).
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(body_of(notice))
    return message
