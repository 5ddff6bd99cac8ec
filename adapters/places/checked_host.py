"""Hosts of HTTP requests by name, where transfers may connect to."""

import httpx

from adapters.places.egress import Egress


class CheckedHost(httpx.AsyncBaseTransport):
    """Checks the name of a host before a transport checks its addresses.

    Args:
        egress: What is permitted.
        inner: What sends.
    """

    def __init__(self, egress: Egress, inner: httpx.AsyncBaseTransport) -> None:
        self._egress, self._inner = egress, inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            AddressRefused: The host may not be connected to.
        """
        self._egress.check_host(request.url.host)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()
