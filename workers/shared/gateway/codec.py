"""The codec server of Temporal's Web UI and CLI: decrypts what they show, encrypts what they send.

Its contract is Temporal's: payloads as JSON, as protobuf writes them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, cast

from fastapi import APIRouter, Request, Response
from google.protobuf.json_format import MessageToJson, Parse, ParseError
from temporalio.api.common.v1 import Payload, Payloads
from temporalio.converter import PayloadCodec

from workers.shared.errors import UnreadablePayload
from workers.shared.gateway.http.requests import Who, bounded_body
from workers.shared.payload_codec import EncryptingCodec
from workers.shared.services.errors import Refused
from workers.shared.services.inbox import Inbox

_MOST_BYTES: Final = 8 << 20
"""Temporal sends 4 MB at once, and base64 makes a third more of it."""

router = APIRouter(prefix="/codec", include_in_schema=False)
PATHS: Final = ("/codec/decode", "/codec/encode")


@router.post("/decode")
async def decode_payloads(request: Request, who: Who) -> Response:
    """Decrypt payloads; those in clear are returned as they are."""
    return await _answer(request, _codec_of(request).decode)


@router.post("/encode")
async def encode_payloads(request: Request, who: Who) -> Response:
    """Encrypt payloads with the first key."""
    return await _answer(request, _codec_of(request).encode)


def _codec_of(request: Request) -> PayloadCodec:
    client = cast("Inbox", request.app.state.inbox).client
    return client.data_converter.payload_codec or EncryptingCodec({})


async def _answer(
    request: Request, change: Callable[[Sequence[Payload]], Awaitable[list[Payload]]]
) -> Response:
    """Answer with what becomes of the payloads of a request.

    Raises:
        TooLarge: There are too many bytes.
        Refused: The body holds no payloads, or one cannot be decrypted.
    """
    body = await bounded_body(request, _MOST_BYTES, "a request to the codec")
    try:
        given = Parse(body, Payloads())
    except (ParseError, ValueError, RecursionError):
        raise Refused('the body must be JSON like {"payloads": []}') from None
    try:
        made = Payloads(payloads=await change(given.payloads))
    except UnreadablePayload as error:
        raise Refused(str(error)) from None
    return Response(MessageToJson(made, indent=None), media_type="application/json")
