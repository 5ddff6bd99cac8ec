"""Temporal Cloud, which lets no client make search attributes."""

from collections.abc import Sequence

import pytest
from temporalio.client import Client

from workers.shared.services import search_attributes
from workers.shared.services.requirements import State
from workers.shared.services.temporal_requirements import Connection, is_cloud, search_attributes_of


@pytest.mark.parametrize(
    ("host", "cloud"),
    [
        ("docs.a1b2c.tmprl.cloud:7233", True),
        ("eu-central-1.aws.api.temporal.io:7233", True),
        ("temporal.example.com:7233", False),
    ],
)
async def test_temporal_cloud_is_known_by_its_address(host: str, cloud: bool) -> None:
    assert is_cloud(await Client.connect(host, lazy=True)) is cloud


async def test_temporal_cloud_is_known_by_an_api_key() -> None:
    client = await Client.connect("temporal.example.com:7233", lazy=True, api_key="k", tls=True)
    assert is_cloud(client)


async def test_for_temporal_cloud_the_command_is_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = await Client.connect("docs.a1.tmprl.cloud:7233", namespace="docs.a1", lazy=True)

    async def missing(client: Client) -> Sequence[str]:
        return ["Pipeline", "NeedsAttention"]

    async def none(client: Client) -> dict[str, str]:
        return {}

    async def connected() -> Client:
        return client

    monkeypatch.setattr(search_attributes, "missing", missing)
    monkeypatch.setattr(search_attributes, "of_another_type", none)
    made = await search_attributes_of(Connection(connected)).made()
    assert made.finding.state is State.MISSING
    assert made.details.endswith(
        "run `tcld namespace search-attributes add --namespace docs.a1 "
        "--search-attribute Pipeline=Keyword --search-attribute NeedsAttention=Bool`"
    )
