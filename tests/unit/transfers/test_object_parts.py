"""An upload in parts never needs more parts than a store takes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import obstore
import pytest

from adapters.places.base import Credentials, Paces
from adapters.places.egress import Egress
from adapters.places.objects import azure_blob, s3
from workflows.transfers.partners import Limits, Partner, PlaceKind

MB = 1 << 20


async def nothing() -> AsyncIterator[bytes]:
    for block in ():
        yield block


@pytest.mark.parametrize(
    ("kind", "size", "part"),
    [
        (PlaceKind.AZURE_BLOB, 1_024 * MB, 3 * MB),
        (PlaceKind.AZURE_BLOB, 100_000 * MB, 10 * MB),
        (PlaceKind.S3, 1_024 * MB, 5 * MB),
        (PlaceKind.S3, 100_000 * MB, 10 * MB),
    ],
)
async def test_parts_grow_with_the_object(
    monkeypatch: pytest.MonkeyPatch, kind: PlaceKind, size: int, part: int
) -> None:
    asked: list[int] = []

    async def put(*args: Any, chunk_size: int, **options: Any) -> None:
        asked.append(chunk_size)

    monkeypatch.setattr(obstore, "put_async", put)
    partner = Partner(
        name="store",
        kind=kind,
        host="http://127.0.0.1:9",
        container="files",
        token="env:TOKEN",
        user="id",
        password="env:PASSWORD",
    )
    credentials = Credentials(password="secret", token="sv=1&sig=x")
    open_place = azure_blob if kind is PlaceKind.AZURE_BLOB else s3
    async with AsyncExitStack() as stack:
        pace = stack.enter_context(Paces().of(partner.name, Limits()))
        opening = open_place(partner, credentials, Egress(local=True), pace)
        place = await stack.enter_async_context(opening)
        await place.put("large", nothing(), size, replaces=True)
    assert asked == [part]
