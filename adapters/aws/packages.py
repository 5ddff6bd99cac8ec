"""The code of a function, as it is passed to another one."""

import asyncio
import base64
import hashlib
from typing import TYPE_CHECKING, Final

import httpx

from adapters.ports import Denied, Unavailable

if TYPE_CHECKING:
    from types_aiobotocore_lambda.type_defs import FunctionCodeTypeDef, GetFunctionResponseTypeDef

LARGEST_PACKAGE: Final = 50 * 1024 * 1024
"""Bytes of a zipped package that can be passed with a call."""
DOWNLOAD_SECONDS: Final = 60


async def code_of(
    function: "GetFunctionResponseTypeDef", transport: httpx.AsyncBaseTransport | None = None
) -> "FunctionCodeTypeDef":
    """What `CreateFunction` is to be given.

    Args:
        function: The answer of `GetFunction`; the address in it works for ten minutes.
        transport: Takes the place of the network.

    Raises:
        Denied: The package is too large to be passed on.
        Unavailable: It cannot be fetched, or does not match its checksum.
    """
    code, config = function.get("Code", {}), function.get("Configuration", {})
    if image := code.get("ResolvedImageUri") or code.get("ImageUri"):
        return {"ImageUri": image}
    if config.get("CodeSize", 0) > LARGEST_PACKAGE:
        raise _too_large()
    package = await _fetch(code.get("Location", ""), transport)
    checksum = base64.b64encode(hashlib.sha256(package).digest()).decode()
    if checksum != config.get("CodeSha256"):
        raise Unavailable("the package of the source function does not match its checksum")
    return {"ZipFile": package}


async def _fetch(url: str, transport: httpx.AsyncBaseTransport | None) -> bytes:
    package = bytearray()
    try:
        async with (
            asyncio.timeout(DOWNLOAD_SECONDS),
            httpx.AsyncClient(transport=transport) as client,
            client.stream("GET", url) as answer,
        ):
            answer.raise_for_status()
            async for piece in answer.aiter_bytes():
                package += piece
                if len(package) > LARGEST_PACKAGE:
                    raise _too_large()
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        # The address is signed: every reader of it may fetch the package.
        raise Unavailable(
            f"the package of the source function cannot be fetched: {_reason(error)}"
        ) from None
    return bytes(package)


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code}"
    return type(error).__name__


def _too_large() -> Denied:
    return Denied(
        f"the package of the source function is larger than {LARGEST_PACKAGE >> 20} MB, the most "
        "that can be passed to another function: make it a container image"
    )
