"""Notices by mail, to a webhook, or into the log."""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Self
from urllib.parse import unquote, urlsplit

from workflows.shared.notifications import Notification, NotificationKind, clean

logger = logging.getLogger(__name__)


class LogNotifications:
    """Writes that a notice was due, without names, addresses and reasons."""

    async def send(self, notice: Notification) -> None:
        """Log what kind of notice is due for which run."""
        logger.info(
            "%s due for %s in state %s (%s); "
            "set DOCFLOW_NOTIFY_WEBHOOK_URL or DOCFLOW_SMTP_URL to have it sent",
            notice.kind,
            notice.workflow_id,
            notice.state,
            notice.id,
        )


_SUBJECTS: Final[Mapping[NotificationKind, str]] = {
    NotificationKind.NEEDS_YOU: "waits for you",
    NotificationKind.REMINDER: "still waits for you",
    NotificationKind.ESCALATION: "has been waiting for long",
    NotificationKind.PARKED: "is parked and needs a decision",
    NotificationKind.ABANDONED: "was cancelled, because it had no answer",
    NotificationKind.FAILED: "has failed",
    NotificationKind.UNDONE: "was undone",
}
_WHY: Final[Mapping[NotificationKind, str]] = {
    NotificationKind.NEEDS_YOU: "It pauses until you answer. Nothing is lost in the meantime.",
    NotificationKind.REMINDER: "It pauses until you answer. Nothing is lost in the meantime.",
    NotificationKind.ESCALATION: "It has had no answer so far. You get this mail because you are "
    "responsible for it, or because reminders to others had no answer.",
    NotificationKind.PARKED: "A step failed. Remove the cause, then retry the step.",
    NotificationKind.ABANDONED: "It waited for an answer for as long as it may. "
    "Send the document again to start over.",
}
_TITLE_CHARACTERS: Final = 150
_LINE_CHARACTERS: Final = 2_000


def subject_of(notice: Notification) -> str:
    """One line that names the run and what is the matter."""
    summary = _SUBJECTS.get(notice.kind, f"is {clean(notice.state, 100)}")
    return f"{clean(notice.title, _TITLE_CHARACTERS)} {summary}"


def body_of(notice: Notification) -> str:
    """A few lines of plain text; no line is made by what comes from outside."""
    return "\n".join(line.rstrip() for line in _lines(notice)) + "\n"


def _lines(notice: Notification) -> Iterator[str]:
    yield subject_of(notice)
    yield ""
    yield clean(notice.reason, _LINE_CHARACTERS)
    yield ""
    yield f"Run:       {clean(notice.workflow_id, _LINE_CHARACTERS)}"
    yield f"State:     {clean(notice.state, 100)}"
    if notice.assignee is not None:
        yield f"Waits for: {clean(notice.assignee, 200)}"
    if notice.waiting_since is not None:
        yield f"Since:     {_moment(notice.waiting_since)}"
    if notice.gives_up_at is not None:
        yield f"Gives up:  {_moment(notice.gives_up_at)}, by itself, without an answer"
    if notice.link is not None:
        yield f"Look:      {clean(notice.link, _LINE_CHARACTERS)}"
    yield ""
    for step in notice.steps:
        yield f"To {clean(step.does, 200)}:"
        yield f"    {clean(step.command, _LINE_CHARACTERS)}"
    if notice.steps:
        yield ""
    yield _WHY.get(notice.kind, "")


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} {at.tzname() or ''}".rstrip()


ADDRESS_CHARACTERS: Final = 320
_PORTS: Final[Mapping[str, int]] = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9-]+"
_ADDRESS: Final = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")
"""Addresses that mail servers of today take; no quoted names, comments and literals."""


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed in."""

    host: str
    port: int
    security: str
    """`smtps`: TLS from the first byte; `smtp+starttls`: before the first command; `smtp`: none."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, url: str) -> Self:
        """Read `smtps://user:password@host:port`; reserved characters are percent-encoded.

        Raises:
            ValueError: It is no such URL, or would send a password in the clear; the message
                says which and does not repeat the URL.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ValueError("has an invalid port; write smtps://host:465") from None
        if parts.scheme not in _PORTS or not parts.hostname or port == 0:
            raise ValueError(
                "must be smtps://host, smtp+starttls://host or smtp://host, "
                "with user:password@ before the host where they are wanted"
            )
        user = unquote(parts.username) if parts.username else None
        if user and parts.scheme == "smtp":
            raise ValueError(
                "would send the password in the clear; write smtps:// or smtp+starttls://"
            )
        password = unquote(parts.password) if parts.password else None
        return cls(parts.hostname, port or _PORTS[parts.scheme], parts.scheme, user, password)


def check_address(address: str) -> str:
    """A mail address, when it is one.

    Raises:
        ValueError: It is not one.
    """
    if len(address) > ADDRESS_CHARACTERS or not _ADDRESS.fullmatch(address):
        raise ValueError(f"{address!r} is not a mail address")
    return address


def check_webhook_url(url: str) -> str:
    """The URL, when notices can be posted to it.

    Raises:
        ValueError: They cannot; the message says why without repeating the URL, which may hold
            a secret.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise ValueError("is not a URL that can be posted to; write https://host/path")
    return url
