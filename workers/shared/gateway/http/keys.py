"""What identity providers publish: fetched within bounds, and kept for an hour."""

import asyncio
import time
import warnings
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, cast

import httpx
from joserfc import jws, jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import Key, KeySet

_LARGEST: Final = 1 << 20
"""Bytes of an answer."""
_STEP_SECONDS: Final = 5
"""Seconds that a connection, or a piece of an answer, may take."""
ANSWER_SECONDS: Final = 10
"""Seconds that an answer may take in all."""
_FETCH_AGAIN_AFTER: Final = 30.0
"""Seconds between two fetches of public keys, whatever key ids tokens name."""
TRY_AGAIN_AFTER: Final = 5.0
"""The same after a fetch that failed."""
LAST: Final = 3600.0
"""Seconds after which what was fetched is fetched again, so that a revoked key is dropped."""


class KeysUnavailable(Exception):
    """The identity provider's public keys cannot be fetched."""


class BoundedTransport(httpx.AsyncBaseTransport):
    """Refuses answers that are larger than any provider's.

    Args:
        inner: What sends requests; None: the network.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport | None = None) -> None:
        self._inner = inner or httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            httpx.DecodingError: The answer is compressed, although nobody asked for that.
        """
        request.headers["accept-encoding"] = "identity"
        answer = await self._inner.handle_async_request(request)
        if answer.headers.get("content-encoding", "identity") != "identity":
            await answer.aclose()
            raise httpx.DecodingError("the answer is compressed", request=request)
        stream = _Bounded(cast(httpx.AsyncByteStream, answer.stream))
        return httpx.Response(
            answer.status_code, headers=answer.headers, stream=stream, extensions=answer.extensions
        )

    async def aclose(self) -> None:
        """Close connections."""
        await self._inner.aclose()


class _Bounded(httpx.AsyncByteStream):
    def __init__(self, inner: httpx.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for block in self._inner:
            size += len(block)
            if size > _LARGEST:
                raise httpx.ReadError("the answer is too large")
            yield block

    async def aclose(self) -> None:
        await self._inner.aclose()


async def fetch_json(url: str, transport: httpx.AsyncBaseTransport | None) -> object:
    """Fetch what a provider publishes.

    Raises:
        httpx.HTTPError: It does not answer, or with an error.
        TimeoutError: It takes too long.
        ValueError: It is not JSON.
    """
    bounded = BoundedTransport(transport)
    async with (
        asyncio.timeout(ANSWER_SECONDS),
        httpx.AsyncClient(transport=bounded, timeout=_STEP_SECONDS) as client,
    ):
        answer = await client.get(url)
        answer.raise_for_status()
        return answer.json()


class PublicKeys:
    """The public keys of a provider: a copy of what it publishes; every gateway has its own.

    Args:
        url: Where they are.
        transport: How they are fetched; the network when None.
        clock: Seconds, for their age.
    """

    def __init__(
        self,
        url: str,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.url = url
        self._transport = transport
        self._clock = clock
        self._keys: Sequence[Key] = ()
        self._fetched: float | None = None
        self._not_before = clock()
        self._fetching = asyncio.Lock()

    async def key(self, kid: object) -> Key | None:
        """The key of an id; None: the provider publishes none like it.

        Args:
            kid: What a token says; None: it names none.

        Raises:
            KeysUnavailable: There are no keys yet, and they cannot be fetched.
        """
        key = self._known(kid)
        if key is None or self._fetched is None or self._clock() - self._fetched > LAST:
            await self._fetch()
            key = self._known(kid)
        return key

    def _known(self, kid: object) -> Key | None:
        if kid is None and len(self._keys) == 1:
            return self._keys[0]
        return next((key for key in self._keys if key.kid == kid), None)

    async def _fetch(self) -> None:
        """Fetch the public keys, unless that has just been tried."""
        async with self._fetching:
            if self._clock() < self._not_before:
                if self._fetched is None:
                    raise KeysUnavailable("the keys of the identity provider could not be fetched")
                return
            try:
                published = await fetch_json(self.url, self._transport)
                keys = KeySet.import_key_set(cast("Any", published)).keys
            except (httpx.HTTPError, TimeoutError, JoseError, ValueError, KeyError, TypeError) as e:
                self._not_before = self._clock() + TRY_AGAIN_AFTER
                if self._fetched is not None:
                    # Keys of an hour ago are better than refusing every caller.
                    return
                raise KeysUnavailable("the keys of the identity provider cannot be fetched") from e
            # A symmetric key that is published by mistake is not a secret.
            self._keys = [key for key in keys if key.key_type != "oct"]
            self._fetched = self._clock()
            self._not_before = self._fetched + _FETCH_AGAIN_AFTER


def decoded(token: str, key: Key, registry: jws.JWSRegistry) -> dict[str, Any]:
    """The claims of a token whose signature is good.

    Args:
        token: The token.
        key: That it must be signed with.
        registry: The algorithms that are accepted.

    Raises:
        JoseError: It is forged or malformed.
    """
    with warnings.catch_warnings():
        # Providers still sign with EdDSA; the library would have its new name, Ed25519.
        warnings.simplefilter("ignore", SecurityWarning)
        return jwt.decode(token, key, registry=registry).claims
