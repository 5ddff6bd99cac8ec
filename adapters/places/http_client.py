"""An HTTP client that connects to what transfers may connect to."""

import ssl

import httpx

from adapters.guarded_http import GuardedTransport
from adapters.places.egress import Egress


def http_client(
    egress: Egress, timeout: httpx.Timeout, tls: ssl.SSLContext | None = None
) -> httpx.AsyncClient:
    """Make a client; no proxy, which would make the connection to whatever address it likes."""
    guarded = GuardedTransport(egress.permitted, egress.resolve, tls)
    return httpx.AsyncClient(
        transport=_CheckedHost(egress, guarded), timeout=timeout, trust_env=False
    )


class _CheckedHost(httpx.AsyncBaseTransport):
    """Checks the name of a host before a transport checks its addresses."""

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
