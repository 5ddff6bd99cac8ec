"""Notices reach a real mail server, and nothing slips in with them."""

import asyncio
import email
import email.policy
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

from adapters.log_notifications import MailServer
from adapters.mail_notifications import SmtpNotifications
from adapters.ports.errors import PortError, Unavailable
from stack.children import free_port
from tests.support.certificates import Certificate, certificate_for
from tests.support.notifications import ID, WORKFLOW_ID, a_notice


@dataclass
class Inbox:
    mails: list[tuple[Sequence[str], EmailMessage]] = field(default_factory=list)
    data_answer: str = "250 OK"
    refused: frozenset[str] = frozenset()
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)

    async def handle_RCPT(
        self, server: SMTP, session: Any, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address in self.refused:
            return f"550 {address} is unknown here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Any, envelope: Envelope) -> str:
        content = envelope.original_content
        assert content is not None
        if self.data_answer.startswith("250"):
            parsed = email.message_from_bytes(content, policy=email.policy.default)
            self.mails.append((tuple(envelope.rcpt_tos), parsed))
        return self.data_answer

    def authenticate(
        self, server: SMTP, session: Any, envelope: Envelope, mechanism: str, data: LoginPassword
    ) -> AuthResult:
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == b"s3cret:@/")


@contextmanager
def serving(inbox: Inbox, **options: Any) -> Iterator[int]:
    """A mail server on a free loopback port, in a thread of its own."""
    controller = Controller(inbox, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    """A certificate for 127.0.0.1 that only this client trusts."""
    return certificate_for("127.0.0.1")


def notices(port: int, scheme: str = "smtp", **options: Any) -> SmtpNotifications:
    login = "" if scheme == "smtp" else "docflow:s3cret%3A%40%2F@"
    server = MailServer.parse(f"{scheme}://{login}127.0.0.1:{port}")
    return SmtpNotifications(server, "docflow@example.org", **options)


async def test_a_mail_names_what_waits_and_where_to_continue() -> None:
    inbox = Inbox()
    with serving(inbox) as port:
        await notices(port).send(a_notice())
        await notices(port).send(a_notice())
        await notices(port).send(a_notice(id="notice_other"))
    (to, mail), (_, again), (_, other) = inbox.mails
    assert to == ("lovelace@example.com",)
    assert mail["From"] == "docflow@example.org" and mail["To"] == "lovelace@example.com"
    assert mail["Subject"] == "Spreadsheet Anmeldungen März.xlsx still waits for you"
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content_type() == "text/plain"
    text = mail.get_content()
    assert "2 values have no meaning yet." in text
    assert "https://docflow.example.com/imports/5f0c62b1" in text
    assert "Since:     2026-02-03 10:15 UTC" in text
    assert "Gives up:  2026-05-04 10:15 UTC, by itself, without an answer" in text
    assert f"To stop it:\n    docflow cancel {WORKFLOW_ID}\n" in text.replace("\r\n", "\n")
    assert mail["Message-ID"] == f"<{ID}@example.org>" == again["Message-ID"] != other["Message-ID"]


@pytest.mark.parametrize("scheme", ["smtps", "smtp+starttls"])
async def test_tls_is_used_before_the_password_is_sent(
    certificate: Certificate, scheme: str
) -> None:
    inbox = Inbox()
    options: dict[str, Any] = {"authenticator": inbox.authenticate}
    if scheme == "smtps":
        options |= {"ssl_context": certificate.server, "auth_require_tls": False}
    else:
        options |= {
            "tls_context": certificate.server,
            "require_starttls": True,
            "auth_required": True,
        }
    with serving(inbox, **options) as port:
        await notices(port, scheme, tls=certificate.client).send(a_notice())
        with pytest.raises(Unavailable, match="cannot be used"):
            await notices(port, scheme).send(a_notice())
    assert len(inbox.mails) == 1
    assert inbox.logins == [(b"docflow", b"s3cret:@/")]


async def test_starttls_that_is_not_offered_is_not_done_without(certificate: Certificate) -> None:
    inbox = Inbox()
    with (
        serving(inbox) as port,
        pytest.raises(PortError, match="asks for, STARTTLS"),
    ):
        await notices(port, "smtp+starttls", tls=certificate.client).send(a_notice())
    assert inbox.mails == []


@pytest.mark.parametrize(
    "address",
    [
        None,
        "lovelace",
        "lovelace@example.com\r\nBcc: eve@example.com",
        "lovelace@example.com, eve@example.com",
        "<lovelace@example.com>",
        '"lovelace eve"@example.com',
        "a..b@example.com",
        "lovelace@[127.0.0.1]",
        "lovelace@example.com ",
    ],
)
async def test_what_is_no_address_gets_no_mail_and_is_not_logged(
    address: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Inbox()
    with serving(inbox) as port, caplog.at_level(logging.WARNING, "adapters.log_notifications"):
        await notices(port).send(a_notice(recipients=(address,) if address else ()))
    assert inbox.mails == []
    assert "has no recipient" in caplog.text
    assert "lovelace" not in caplog.text and "eve" not in caplog.text


async def test_nothing_from_outside_makes_a_header_or_a_line() -> None:
    inbox = Inbox()
    hostile = a_notice(
        title="a.xlsx\r\nBcc: eve@example.com\r\n\r\nhello",
        reason="done\r\n.\r\nMAIL FROM:<eve@example.com>\x1b[2J",
        assignee="lovelace\nState:     COMPLETED",
        link="https://example.com/" + "x" * 1900,
    )
    with serving(inbox) as port:
        await notices(port).send(hostile)
    ((recipients, mail),) = inbox.mails
    assert recipients == ("lovelace@example.com",)
    assert mail["Bcc"] is None
    assert "\n" not in mail["Subject"]
    lines = mail.get_content().splitlines()
    assert [line for line in lines if line.startswith("State:")] == ["State:     CELL_MAPPING"]
    assert not any(line == "." or line.startswith(("MAIL", "Bcc", "hello")) for line in lines)
    assert "\x1b" not in mail.get_content()
    assert "https://example.com/" + "x" * 1900 in mail.get_content()


@pytest.mark.parametrize(
    ("answer", "raised"),
    [("451 try later", Unavailable), ("550 lovelace@example.com is gone", PortError)],
)
async def test_what_the_mail_server_answers_decides_about_another_attempt(
    answer: str, raised: type[PortError]
) -> None:
    with serving(Inbox(data_answer=answer)) as port, pytest.raises(PortError) as failure:
        await notices(port).send(a_notice())
    assert type(failure.value) is raised
    assert "lovelace" not in str(failure.value)


async def test_a_recipient_who_is_refused_does_not_cost_the_other_their_mail() -> None:
    inbox = Inbox(refused=frozenset({"lovelace@example.com"}))
    with serving(inbox) as port:
        await notices(port).send(a_notice(recipients=("lovelace@example.com", "ops@example.com")))
        with pytest.raises(PortError, match="answered 550") as failure:
            await notices(port).send(a_notice())
    assert [to for to, _ in inbox.mails] == [("ops@example.com",)]
    assert "lovelace" not in str(failure.value)


async def test_a_missing_mail_server_is_a_transient_failure() -> None:
    with pytest.raises(Unavailable, match="cannot be used"):
        await notices(free_port()).send(a_notice())


async def test_a_silent_mail_server_times_out() -> None:
    gone = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(say_nothing, "127.0.0.1")
    async with server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unavailable, match="cannot be used"):
            await notices(port, timeout=0.2).send(a_notice())
        await asyncio.wait_for(gone.wait(), 60)


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://localhost", MailServer("localhost", 25, "smtp")),
        ("smtp+starttls://mail:2525", MailServer("mail", 2525, "smtp+starttls")),
        ("smtps://a%40b:c@mail", MailServer("mail", 465, "smtps", "a@b", "c")),
    ],
)
def test_a_mail_server_is_named_by_a_url(url: str, server: MailServer) -> None:
    assert MailServer.parse(url) == server


@pytest.mark.parametrize(
    "url", ["mail", "http://mail", "smtp://", "smtp://ada:secret@mail", "smtp://mail:99999"]
)
def test_a_url_of_no_mail_server(url: str) -> None:
    with pytest.raises(ValueError, match="smtp") as failure:
        MailServer.parse(url)
    assert "secret" not in str(failure.value)
