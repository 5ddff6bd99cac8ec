"""Deletes of objects that are refused where the object has changed.

`obstore` deletes whatever has the name. Azure Blob and Amazon S3 delete one version alone where the
request states its etag (`If-Match`, RFC 9110, 13.1.1): so that request is sent from here.

Sources: "Specifying conditional headers" of Azure Blob Storage; "DeleteObject" of Amazon S3.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from adapters.http.resolved import AddressRefused
from adapters.places.egress import Egress
from adapters.ports import Denied
from adapters.ports.places import PartnerAway
from contracts.transfers import Partner

if TYPE_CHECKING:
    import httpx

_TEXT_BYTES: Final = 1 << 14


@dataclass
class ConditionalDeletes:
    """Sends such requests, as an asynchronous context manager.

    Args:
        partner: Whose store it is.
        signed: Key and etag -> URL and headers of a DELETE that proves who asks.
        egress: What may be connected to.
        silence: Seconds that the store may take to answer.
    """

    partner: Partner
    signed: Callable[[str, str], Awaitable[tuple[str, Mapping[str, str]]]]
    egress: Egress
    silence: float
    _opened: AsyncExitStack = field(default_factory=AsyncExitStack, init=False, repr=False)
    _client: "httpx.AsyncClient | None" = field(default=None, init=False, repr=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._opened.aclose()

    async def delete(self, key: str, tag: str) -> tuple[int, str]:
        """Delete an object if it has an etag; status and text of the answer, whatever they are.

        Raises:
            Denied: The address of the store is not permitted.
            PartnerAway: It cannot be reached.
        """
        # The HTTP client takes 7 MB of memory, for workers that delete objects.
        import httpx

        client, name = await self._connected(), self.partner.name
        (url, headers), text = await self.signed(key, tag), b""
        try:
            async with client.stream("DELETE", url, headers=headers) as answer:
                async for piece in answer.aiter_bytes():
                    text += piece
                    if len(text) >= _TEXT_BYTES:
                        break
        except AddressRefused as refusal:
            raise Denied(str(refusal)) from None
        except (httpx.HTTPError, OSError) as error:
            # Its text may hold the signature.
            raise PartnerAway(name, f"{name} cannot be reached: {type(error).__name__}") from None
        named = answer.headers.get("x-ms-error-code", "")
        return answer.status_code, f"{named} {text.decode('utf-8', 'replace')}"

    async def _connected(self) -> "httpx.AsyncClient":
        """Made for the first request: most steps delete nothing."""
        if self._client is None:
            from httpx import Timeout

            from adapters.places.checked_host import http_client

            client = http_client(self.egress, Timeout(self.silence))
            self._client = await self._opened.enter_async_context(client)
        return self._client
