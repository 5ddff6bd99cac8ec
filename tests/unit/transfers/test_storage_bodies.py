"""Bodies of storage queues, as different senders write them."""

import base64

import pytest

from workers.shared.bridges.storage_queue import Encoding, body_of

EVENT = '{"id": "1"}'
ENCODED = base64.b64encode(EVENT.encode()).decode()


@pytest.mark.parametrize(
    ("text", "encoding", "body"),
    [
        (EVENT, Encoding.AUTO, EVENT),
        ("\ufeff " + EVENT, Encoding.AUTO, "\ufeff " + EVENT),
        (ENCODED, Encoding.AUTO, EVENT),
        (ENCODED[:8] + "\r\n" + ENCODED[8:], Encoding.AUTO, EVENT),
        (ENCODED, Encoding.BASE64, EVENT),
        (ENCODED, Encoding.PLAIN, ENCODED),
        # Words that happen to be base64 of something that is not JSON.
        ("hello123", Encoding.AUTO, "hello123"),
        ("not base64!", Encoding.BASE64, "not base64!"),
        ("", Encoding.AUTO, ""),
    ],
)
def test_the_body_is_what_the_sender_meant(text: str, encoding: Encoding, body: str) -> None:
    assert body_of(text, encoding) == body.encode()
