"""Connection strings of storage accounts."""

import pytest

from adapters.azure.storage_account import StorageAccount


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("UseDevelopmentStorage=true", "http://127.0.0.1:10000/devstoreaccount1"),
        (
            "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=a2V5;"
            "EndpointSuffix=core.windows.net",
            "https://acme.blob.core.windows.net",
        ),
        (
            "BlobEndpoint=https://acme.blob.core.windows.net/;SharedAccessSignature=sv=1&sig=2%3D",
            "https://acme.blob.core.windows.net",
        ),
    ],
)
def test_connection_strings(text: str, endpoint: str) -> None:
    account = StorageAccount.from_connection_string(text)
    assert account.endpoint == endpoint
    assert account.name in ("acme", "devstoreaccount1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no AccountKey"),
        ("nonsense", "name=value"),
        ("AccountName=a;AccountKey=top secret", "not base64"),
        ("AccountKey=a2V5", "no AccountName"),
        ("AccountName=a;AccountKey=a2V5;BlobEndpoint=ftp://x", "not an http"),
    ],
)
def test_malformed_connection_strings(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        StorageAccount.from_connection_string(text)
    assert "secret" not in str(refused.value)
