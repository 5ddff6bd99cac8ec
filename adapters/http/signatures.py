"""Signatures by which the receiver of a message verifies who sent it.

The headers `webhook-id`, `webhook-timestamp` and `webhook-signature` are those of the Standard
Webhooks specification (standardwebhooks.com, version 1.0.0): its libraries check them.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Final

_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - says how a secret is written


def secret_bytes(secret: str) -> bytes:
    """The key of the signature: what follows `whsec_` in base64, anything else as it stands.

    Raises:
        ValueError: What follows `whsec_` is not base64.
    """
    if not secret.startswith(_SECRET_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("begins with whsec_, and what follows is not base64") from None


def signature(secret: bytes, id: str, timestamp: int, body: bytes) -> str:
    """One signature, as it stands in `webhook-signature`: HMAC-SHA256 over id, time and body."""
    signed = f"{id}.{timestamp}.".encode() + body
    digest = hmac.new(secret, signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(digest).decode()}"


def signed_headers(
    secrets: Sequence[bytes], id: str, timestamp: int, body: bytes
) -> Mapping[str, str]:
    """The headers of a message.

    Args:
        secrets: Every secret that is valid: a receiver that knows one of them accepts the message,
            so that secrets can be rotated. None: the message is not signed.
        id: The same for every attempt.
        timestamp: Of this attempt, in seconds since 1970.
        body: As it is sent.
    """
    headers = {"webhook-id": id, "webhook-timestamp": str(timestamp)}
    if secrets:
        headers["webhook-signature"] = " ".join(
            signature(secret, id, timestamp, body) for secret in secrets
        )
    return headers
