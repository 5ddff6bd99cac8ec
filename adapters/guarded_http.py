"""Connections to hosts that others name: the address is checked where the connection is made."""

import ssl
from collections.abc import Callable, Sequence

import httpx

from adapters.http import AddressRefused, IPAddress, Resolve, literal, resolve


class GuardedTransport(httpx.AsyncBaseTransport):
    """Connects to permitted addresses only.

    A host is resolved once for each request. All of its addresses are checked, and the connection
    is made to one of those: what a name server says a moment later counts for nothing. The
    certificate is still checked against the host's name, and the header `Host` names it.

    Args:
        permitted: Whether an address may be connected to.
        resolve: Finds the addresses of a host.
        tls: Certificates that are trusted; None: those of the machine.
    """

    def __init__(
        self,
        permitted: Callable[[IPAddress], bool],
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._permitted = permitted
        self._resolve = resolve
        # A connection is never used again: another host may have the same address.
        self._inner = httpx.AsyncHTTPTransport(
            verify=tls or True, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            AddressRefused: The host has an address that is not permitted; nothing was sent.
            httpx.ConnectError: It has none, or none of them can be reached.
        """
        url = request.url
        # As it is sent: names are decoded by one standard, and would be encoded by another.
        host = url.raw_host.decode("ascii")
        failure: httpx.TransportError | None = None
        for address in await self._addresses(host, url.port or 443):
            pinned = httpx.Request(
                request.method,
                url.copy_with(host=str(address)),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        raise failure or httpx.ConnectError("the host has no address", request=request)

    async def _addresses(self, host: str, port: int) -> Sequence[IPAddress]:
        known = literal(host)
        try:
            found = [known] if known is not None else await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError("the host cannot be resolved") from error
        if not all(self._permitted(address) for address in found):
            raise AddressRefused(f"{host} has an address that is not of the public internet")
        return list(dict.fromkeys(found))

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()
