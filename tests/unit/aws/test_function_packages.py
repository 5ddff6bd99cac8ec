"""The package of a function on its way to another one."""

import base64
import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from adapters.aws.functions import LARGEST_PACKAGE, code_of
from adapters.ports.errors import Denied, Unavailable

PACKAGE = b"PK\x05\x06" + b"\0" * 18
SIGNED = "https://packages.invalid/loader.zip?X-Amz-Signature=secret"


def function(**config: Any) -> Any:
    """What AWS says about a function, and where its package is."""
    checksum = base64.b64encode(hashlib.sha256(PACKAGE).digest()).decode()
    config = {"CodeSize": len(PACKAGE), "CodeSha256": checksum} | config
    return {"Code": {"Location": SIGNED}, "Configuration": config}


def storage(answer: httpx.Response | Exception) -> httpx.MockTransport:
    """Where packages are fetched from."""

    def serve(request: httpx.Request) -> httpx.Response:
        assert str(request.url) == SIGNED
        if isinstance(answer, Exception):
            raise answer
        return answer

    return httpx.MockTransport(serve)


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"\0" * (1 << 20)


async def test_a_package_is_fetched_and_checked() -> None:
    code = await code_of(function(), storage(httpx.Response(200, content=PACKAGE)))
    assert code == {"ZipFile": PACKAGE}


@pytest.mark.parametrize(
    "code", [{"ImageUri": "image:1"}, {"ImageUri": "image", "ResolvedImageUri": "image:1"}]
)
async def test_an_image_is_named_as_it_was_resolved(code: dict[str, str]) -> None:
    assert await code_of({**function(), "Code": code}) == {"ImageUri": "image:1"}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (httpx.Response(200, content=PACKAGE[:-1]), "does not match its checksum"),
        (httpx.Response(200, content=b""), "does not match its checksum"),
        (httpx.Response(403, content=PACKAGE), "HTTP 403"),
        (httpx.Response(302, headers={"location": "http://169.254.169.254/"}), "HTTP 302"),
        (httpx.ReadTimeout("slow"), "ReadTimeout"),
        (httpx.ConnectError("no route"), "ConnectError"),
    ],
    ids=["cut", "empty", "expired", "elsewhere", "slow", "away"],
)
async def test_anything_but_the_package_is_asked_for_again(
    answer: httpx.Response | Exception, says: str
) -> None:
    with pytest.raises(Unavailable, match=says) as reported:
        await code_of(function(), storage(answer))
    assert "secret" not in f"{reported.value!r}{reported.value.__cause__!r}"


@pytest.mark.parametrize("size", [LARGEST_PACKAGE + 1, 0], ids=["as it says", "against its word"])
async def test_a_package_that_is_too_large_is_not_held(size: int) -> None:
    answer = httpx.Response(200, content=endless())
    with pytest.raises(Denied, match="larger than 50 MB"):
        await code_of(function(CodeSize=size), storage(answer))


async def test_an_invalid_address_is_reported() -> None:
    wrong = {**function(), "Code": {"Location": "http://[::"}}
    with pytest.raises(Unavailable, match="InvalidURL"):
        await code_of(wrong)
