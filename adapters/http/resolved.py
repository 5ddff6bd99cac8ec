"""Addresses of the hosts that others name."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

from adapters.http.addresses import IPAddress

Resolve = Callable[[str, int], Awaitable[Sequence[IPAddress]]]
"""Addresses of a host; raises `OSError` when it has none."""


class AddressRefused(Exception):
    """A host has an address that nothing is sent to."""


async def resolve(host: str, port: int) -> Sequence[IPAddress]:
    """What the resolver of this machine says."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(address[0]) for *_, address in found]
