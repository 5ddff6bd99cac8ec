"""Webhooks are posted to real servers, which do their worst."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

import pytest

from adapters.http import IPAddress
from adapters.webhooks import HttpWebhooks, WebhookAnswer, WebhookMessage
from stack.children import free_port
from tests.support.certificates import certificate_for
from tests.support.jobs.receivers import (
    Answer,
    byte_by_byte,
    cut_off,
    endless_body,
    endless_head,
    garbled,
    lying,
    receiver,
    silent,
    with_status,
)

BODY = b'{"job_id":"abc"}'
PROMPT = 60.0
"""Seconds: for what has an answer."""
SHORT = 0.3
"""Seconds: for what never has one."""

SLOW = WebhookAnswer(429, problem="answered 429")
REDIRECTED = WebhookAnswer(302, problem="answered 302, a redirect, which is not followed")


def message(url: str, timeout: float = PROMPT, **changes: Any) -> WebhookMessage:
    return WebhookMessage(url=url, id="msg_1", body=BODY, timeout=timeout, **changes)


async def posted(answer: Answer, timeout: float = PROMPT) -> WebhookAnswer:
    async with receiver(answer) as site:
        url = f"http://127.0.0.1:{site.port}/hook"
        return await HttpWebhooks(local=True).post(message(url, timeout))


async def test_every_valid_secret_signs_a_message() -> None:
    async with receiver(with_status("204 No Content")) as site:
        url = f"http://127.0.0.1:{site.port}/hook?token=1"
        sent = message(url, secrets=(b"new", b"old"))
        answer = await HttpWebhooks(local=True).post(sent)
    assert answer == WebhookAnswer(204)
    ((head, body),) = site.requests
    lines = head.split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ") for line in lines[1:-2])}
    assert lines[0] == "POST /hook?token=1 HTTP/1.1" and body == BODY
    assert headers["host"] == f"127.0.0.1:{site.port}" and headers["webhook-id"] == "msg_1"
    signed = f"msg_1.{headers['webhook-timestamp']}.".encode() + BODY
    digests = [hmac.digest(secret, signed, hashlib.sha256) for secret in (b"new", b"old")]
    assert headers["webhook-signature"].split() == [
        "v1," + base64.b64encode(digest).decode() for digest in digests
    ]
    assert "new" not in repr(sent)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (with_status("500 Oh"), WebhookAnswer(500, problem="answered 500")),
        (
            with_status("429 Slow", "Retry-After: 7"),
            WebhookAnswer(429, 7, "answered 429"),
        ),
        (
            with_status("302 Found", "Location: http://127.0.0.1:1/"),
            REDIRECTED,
        ),
        *(
            (with_status("429 Slow", f"Retry-After: Mon, 01 Jan {moment}"), SLOW)
            for moment in (
                "99999999999999999999 00:00:00 GMT",
                "2024 00:00:00 +99999999999999999999",
            )
        ),
        *(
            (with_status("302 Found", f"Location: {place}"), REDIRECTED)
            for place in ("http://xn--", "http://xn--a/", "https://a:b@[::1", "javascript:1")
        ),
        (lying, WebhookAnswer(problem="what it answered is not HTTP")),
        (cut_off, WebhookAnswer(problem="what it answered is not HTTP")),
        (endless_head, WebhookAnswer(problem="what it answered is not HTTP")),
    ],
)
async def test_what_a_receiver_answers_is_no_error(answer: Answer, expected: WebhookAnswer) -> None:
    assert await posted(answer) == expected


@pytest.mark.parametrize("answer", [silent, byte_by_byte])
async def test_the_time_limit_is_for_all_of_an_attempt(answer: Answer) -> None:
    assert await posted(answer, SHORT) == WebhookAnswer(problem="no answer within 0.3 s")


async def test_gigabytes_of_an_answer_are_not_read() -> None:
    taken: list[int] = []
    assert await posted(endless_body(taken)) == WebhookAnswer(200)
    # What the buffers of the operating system hold has left the receiver.
    assert sum(taken) < 50_000_000


async def test_nothing_listens() -> None:
    answer = await HttpWebhooks(local=True).post(message(f"http://127.0.0.1:{free_port()}/"))
    assert answer == WebhookAnswer(problem="cannot be reached: ConnectError")


@dataclass
class Names:
    """A name server whose answers change from one question to the next."""

    answers: list[Sequence[str]]
    asked: list[str] = field(default_factory=list)

    async def resolve(self, host: str, port: int) -> Sequence[IPAddress]:
        self.asked.append(host)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not answer:
            raise OSError("no such name")
        return [ip_address(each) for each in answer]


@pytest.mark.parametrize(
    "addresses",
    [
        ("127.0.0.1",),
        ("169.254.169.254",),
        ("8.8.8.8", "10.0.0.1"),
        ("::ffff:127.0.0.1",),
    ],
)
async def test_a_name_with_a_private_address_is_refused(addresses: Sequence[str]) -> None:
    async with receiver(with_status("200 OK")) as site:
        client = HttpWebhooks(resolve=Names([addresses]).resolve)
        answer = await client.post(message(f"http://hooks.example.org:{site.port}/"))
    assert answer.refused and "not of the public internet" in (answer.problem or "")
    assert not site.requests


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "127.1", "2130706433", "0x7f000001"])
async def test_loopback_in_any_spelling_is_refused_without_the_setting(host: str) -> None:
    async with receiver(with_status("200 OK")) as site:
        answer = await HttpWebhooks().post(message(f"http://{host}:{site.port}/"))
    assert answer.refused or answer.problem == "cannot be reached: ConnectError"
    assert not site.requests


async def test_the_setting_for_loopback_admits_no_other_private_address() -> None:
    client = HttpWebhooks(local=True, resolve=Names([("10.0.0.1",)]).resolve)
    assert (await client.post(message("http://hooks.example.org/"))).refused


async def test_a_name_is_resolved_once_and_connected_to_as_it_was_checked() -> None:
    """Rebinding: the second answer of the name server would be another address."""
    names = Names([("127.0.0.1",), ("10.0.0.1",)])
    async with receiver(with_status("200 OK")) as site:
        client = HttpWebhooks(local=True, resolve=names.resolve)
        answer = await client.post(message(f"http://hooks.example.org:{site.port}/"))
    assert answer == WebhookAnswer(200)
    assert names.asked == ["hooks.example.org"]
    assert f"host: hooks.example.org:{site.port}" in site.requests[0][0].lower()


async def test_a_name_that_does_not_exist_may_exist_later() -> None:
    answer = await HttpWebhooks(resolve=Names([()]).resolve).post(message("https://no.example/"))
    assert answer == WebhookAnswer(problem="cannot be reached: ConnectError")


async def test_the_certificate_is_checked_against_the_name() -> None:
    certificate = certificate_for("hooks.example.org")
    names = Names([("127.0.0.1",)])
    async with receiver(with_status("200 OK"), tls=certificate.server) as site:
        client = HttpWebhooks(local=True, resolve=names.resolve, tls=certificate.client)
        url = "https://{}:" + str(site.port)
        assert await client.post(message(url.format("hooks.example.org"))) == WebhookAnswer(200)
        other = await client.post(message(url.format("other.example.org")))
        untrusting = HttpWebhooks(local=True, resolve=names.resolve)
        untrusted = await untrusting.post(message(url.format("hooks.example.org")))
    for answer in (other, untrusted):
        assert (answer.problem or "").startswith("its certificate is not accepted")
    assert len(site.requests) == 1


async def test_what_a_receiver_sends_past_its_encryption_is_no_error() -> None:
    certificate = certificate_for("hooks.example.org")
    names = Names([("127.0.0.1",)])
    async with receiver(garbled, tls=certificate.server) as site:
        client = HttpWebhooks(local=True, resolve=names.resolve, tls=certificate.client)
        answer = await client.post(message(f"https://hooks.example.org:{site.port}/"))
    assert answer.status is None and (answer.problem or "").startswith("its encryption broke off")


async def test_a_name_that_cannot_exist_is_given_up_at_once() -> None:
    names = Names([("8.8.8.8",)])
    answer = await HttpWebhooks(resolve=names.resolve).post(message("https://xn--a.example/"))
    assert answer == WebhookAnswer(problem="its host is not a name that can exist", refused=True)
    assert not names.asked


async def test_no_proxy_of_the_environment_makes_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with receiver(with_status("200 OK")) as proxy, receiver(with_status("200 OK")) as site:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        answer = await HttpWebhooks(local=True).post(message(f"http://127.0.0.1:{site.port}/"))
    assert answer == WebhookAnswer(200) and not proxy.requests and len(site.requests) == 1


async def test_a_sender_that_is_stopped_leaves() -> None:
    async with receiver(silent) as site:
        url = f"http://127.0.0.1:{site.port}/"
        sending = asyncio.create_task(HttpWebhooks(local=True).post(message(url)))
        while not site.requests:
            await asyncio.sleep(0.01)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await asyncio.wait_for(site.left.wait(), 60)
