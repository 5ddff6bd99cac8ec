"""HTTP to hosts that others name: checked addresses, signatures, what headers of an answer say.

Signatures by which the receiver of a message verifies who sent it.

The headers `webhook-id`, `webhook-timestamp` and `webhook-signature` are those of the Standard
Webhooks specification (standardwebhooks.com, version 1.0.0): its libraries check them.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

IPAddress = IPv4Address | IPv6Address

_REFUSED_V4: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # between a provider and its customers
            "127.0.0.0/8",
            "168.63.129.16/32",  # the platform of Azure
            "169.254.0.0/16",  # link-local, metadata of clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_GLOBAL_V6: Final = IPv6Network("2000::/3")
_REFUSED_V6: Final = tuple(
    map(IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"))
)
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")


def is_public(address: IPAddress) -> bool:
    """Whether an address is one of the public internet.

    Loopback, link-local, private, shared, reserved and multicast addresses are not, nor those at
    which clouds serve metadata. An IPv6 address that stands for an IPv4 address is what that is.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    if (inner := _inner(address)) is not None:
        return is_public(inner)
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def is_local(address: IPAddress) -> bool:
    """Whether it is an address of the machine itself."""
    inner = _inner(address) if isinstance(address, IPv6Address) else None
    return (inner or address).is_loopback


def literal(host: str) -> IPAddress | None:
    """The address that a host is written as; None: it is a name."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def _inner(address: IPv6Address) -> IPv4Address | None:
    number = int(address)
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _TRANSLATED or (number >> 32 == 0 and number > 1):
        return IPv4Address(number & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address((number >> 80) & 0xFFFFFFFF)
    return None


Resolve = Callable[[str, int], Awaitable[Sequence[IPAddress]]]
"""Addresses of a host; raises `OSError` when it has none."""


class AddressRefused(Exception):
    """A host has an address that nothing is sent to."""


async def resolve(host: str, port: int) -> Sequence[IPAddress]:
    """What the resolver of this machine says."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(address[0]) for *_, address in found]


LONGEST_HINT_SECONDS: Final = 3600.0
"""A receiver may ask for no longer pause."""


def retry_after(value: str | None) -> float | None:
    """Seconds of a `Retry-After` header (RFC 9110, 10.2.3); None when there is none."""
    if value is None:
        return None
    if value.isascii() and value.isdigit():
        seconds = float(value[:10])
    else:
        try:
            moment = parsedate_to_datetime(value)
        except (OverflowError, ValueError):
            # A year or a zone of so many digits overflows before it is refused.
            return None
        # A date without zone is what an HTTP date never is, and GMT is what it would mean.
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_HINT_SECONDS)


_SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - says how a secret is written


def secret_bytes(secret: str) -> bytes:
    """The key of the signature: what follows `whsec_` in base64, anything else as it stands.

    Raises:
        ValueError: What follows `whsec_` is not base64, or empty.
    """
    if not secret.startswith(_SECRET_PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("begins with whsec_, and what follows is not base64") from None
    if not key:
        raise ValueError("begins with whsec_, and nothing follows: anybody could sign with it")
    return key


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
