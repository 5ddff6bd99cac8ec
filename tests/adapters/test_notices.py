"""Notices reach a real webhook, and every channel that there is."""

import asyncio
import base64
import datetime as dt
import hashlib
import hmac
import json
import logging
from collections.abc import AsyncIterator

import pytest

from adapters.http import secret_bytes
from adapters.log_notifications import LogNotifications, check_webhook_url
from adapters.ports.errors import PortError, Throttled, Unavailable
from adapters.webhook_notifications import WebhookNotifications
from stack.children import free_port
from tests.support.notifications import ID, SINCE, WORKFLOW_ID, a_notice
from tests.support.webhook import Receiver, receiving


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


async def test_a_webhook_gets_the_notice_with_its_key_and_signature(receiver: Receiver) -> None:
    secret = b"a key of both"
    await WebhookNotifications(receiver.url, secret).send(a_notice())
    ((request, headers, body),) = receiver.requests
    assert request == "POST /hook?token=hidden HTTP/1.1"
    assert headers["idempotency-key"] == headers["webhook-id"] == ID
    sent = json.loads(body)
    assert (sent["id"], sent["workflowId"], sent["title"]) == (
        ID,
        WORKFLOW_ID,
        "Spreadsheet Anmeldungen März.xlsx",
    )
    assert sent["steps"][0]["command"] == f"docflow cancel {WORKFLOW_ID}"
    assert "recipients" not in sent and "." not in ID
    assert (sent["kind"], sent["importType"], sent["organisationId"]) == (
        "reminder",
        "EVENT_PARTICIPANT",
        1,
    )
    assert dt.datetime.fromisoformat(sent["waitingSince"]) == SINCE
    stamp = headers["webhook-timestamp"]
    assert abs(int(stamp) - dt.datetime.now(dt.UTC).timestamp()) < 60
    digest = hmac.digest(secret, f"{ID}.{stamp}.".encode() + body, hashlib.sha256)
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


async def test_without_a_secret_nothing_is_signed(receiver: Receiver) -> None:
    await WebhookNotifications(receiver.url).send(a_notice())
    headers = receiver.requests[0][1]
    assert "webhook-signature" not in headers and headers["webhook-timestamp"].isdigit()


@pytest.mark.parametrize(
    ("answer", "raised", "pause"),
    [
        ("429 Too Many Requests\r\nRetry-After: 7", Throttled, 7),
        ("429 Too Many Requests", Throttled, None),
        ("429 Too Many Requests\r\nRetry-After: soon", Throttled, None),
        ("429 Too Many Requests\r\nRetry-After: 99999999999", Throttled, 3600),
        ("429 Slow\r\nRetry-After: Wed, 21 Oct 2015 07:28:00 GMT", Throttled, 0),
        ("503 Service Unavailable\r\nRetry-After: 120", Throttled, 120),
        ("503 Service Unavailable", Unavailable, None),
        ("500 Internal Server Error", Unavailable, None),
        ("408 Request Timeout", Unavailable, None),
        ("404 Not Found", PortError, None),
        ("301 Moved\r\nLocation: http://127.0.0.1:1/", PortError, None),
    ],
)
async def test_what_a_webhook_answers_decides_about_another_attempt(
    receiver: Receiver, answer: str, raised: type[PortError], pause: float | None
) -> None:
    receiver.answers = [answer]
    with pytest.raises(PortError) as failure:
        await WebhookNotifications(receiver.url).send(a_notice())
    assert type(failure.value) is raised
    assert getattr(failure.value, "retry_after", None) == pause
    assert "hidden" not in str(failure.value)


async def test_a_silent_or_missing_webhook_is_a_transient_failure(receiver: Receiver) -> None:
    receiver.silent = True
    with pytest.raises(Unavailable, match=r"did not answer within 0\.2 s"):
        await WebhookNotifications(receiver.url, timeout=0.2).send(a_notice())
    await asyncio.wait_for(receiver.gone.wait(), 60)
    with pytest.raises(Unavailable, match="cannot be reached"):
        await WebhookNotifications(f"http://127.0.0.1:{free_port()}/").send(a_notice())


@pytest.mark.parametrize(
    "url",
    [
        "ftp://hidden/",
        "hidden/path",
        "https://",
        "https://hidden:0/",
        "https://hid den/",
        "http://[1",
    ],
)
def test_a_url_that_nothing_can_be_posted_to(url: str) -> None:
    with pytest.raises(ValueError, match="is not a URL that can be posted to") as failure:
        check_webhook_url(url)
    assert "hidden" not in str(failure.value)


def test_a_secret_is_text_or_base64() -> None:
    assert secret_bytes("plain") == b"plain"
    assert secret_bytes("whsec_AAEC") == b"\x00\x01\x02"
    with pytest.raises(ValueError, match="nothing follows"):
        secret_bytes("whsec_")
    with pytest.raises(ValueError, match="not base64"):
        secret_bytes("whsec_*")


async def test_the_log_holds_no_personal_data(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "adapters.log_notifications"):
        await LogNotifications().send(a_notice())
    assert "reminder due for spreadsheet/5f0c62b1" in caplog.text
    assert not any(word in caplog.text for word in ("lovelace", "Anmeldungen", "example.com"))
