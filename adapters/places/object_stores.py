"""Connects to Azure Blob and to S3, by connections that are checked where they are made."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

import obstore
from obstore.exceptions import BaseError

from adapters.azure.storage_account import StorageAccount, store_config
from adapters.http.addresses import is_public
from adapters.http.resolved import AddressRefused
from adapters.places.credentials import Credentials
from adapters.places.egress import Egress
from adapters.places.object_deletes import ConditionalDeletes
from adapters.places.objects import ObjectPlace
from adapters.places.pace import Pace
from adapters.places.tunnel import Tunnel
from adapters.ports import Denied
from adapters.ports.places import PartnerAway
from contracts.transfers import Partner

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

SILENCE_SECONDS: Final = 30.0
_RETRIES: "RetryConfig" = {"max_retries": 1, "retry_timeout": timedelta(seconds=20)}
"""The run itself tries again."""
_PART: Final = 3 << 20
"""Of a blob, for which Azure knows no least size. Smaller ones take more requests than they save
memory."""
_SIGNED_FOR: Final = timedelta(minutes=15)
_REGION: Final = "us-east-1"
_NO_PROXY: Final = "http://127.0.0.1:9"
"""The port of RFC 863, on which nothing listens; no request goes there."""


@asynccontextmanager
async def azure_blob(
    partner: Partner,
    credentials: Credentials,
    egress: Egress,
    pace: Pace,
    silence: float = SILENCE_SECONDS,
) -> AsyncGenerator[ObjectPlace]:
    """A container of a storage account, for the length of the block."""
    from obstore.store import AzureStore

    account = _account(partner, credentials)
    async with _guarded(partner, account.endpoint, egress, silence) as (endpoint, client, tunnel):
        account_here = replace(account, endpoint=endpoint)
        try:
            store = AzureStore(
                partner.container or "",
                config=store_config(account_here),
                client_options=client,
                retry_config=_RETRIES,
            )
        except (BaseError, ValueError):
            # Its text may hold a part of the secret.
            raise Denied(
                f"{partner.token} of {partner.name} is neither a SAS nor a connection string, or "
                "its container has no valid name"
            ) from None

        async def signed(key: str, tag: str) -> tuple[str, Mapping[str, str]]:
            blob = f"{partner.container}/{key}"
            return account_here.signed("DELETE", blob, headers={"If-Match": tag})

        async with ConditionalDeletes(partner, signed, egress, silence) as deletes:
            yield ObjectPlace(
                partner, store, credentials, pace, None, lambda: tunnel.refused, deletes, _PART
            )


@asynccontextmanager
async def s3(
    partner: Partner,
    credentials: Credentials,
    egress: Egress,
    pace: Pace,
    silence: float = SILENCE_SECONDS,
) -> AsyncGenerator[ObjectPlace]:
    """A bucket, for the length of the block."""
    from obstore.store import S3Store

    region = _region_of(partner.host or "")
    url = _url(partner.host or f"s3.{region}.amazonaws.com")
    async with _guarded(partner, url, egress, silence) as (endpoint, client, tunnel):
        store = S3Store(
            partner.container or "",
            endpoint=endpoint,
            region=region,
            virtual_hosted_style_request=False,
            checksum_algorithm="sha256",
            # Nothing of this machine's own credentials is ever used.
            credential_provider=lambda: {
                "access_key_id": partner.user or "",
                "secret_access_key": credentials.token or "",
                "token": None,
                "expires_at": None,
            },
            client_options=client,
            retry_config=_RETRIES,
        )
        checked = "SHA-256 checked by the server"

        async def signed(key: str, tag: str) -> tuple[str, Mapping[str, str]]:
            return await obstore.sign_async(store, "DELETE", key, _SIGNED_FOR), {"If-Match": tag}

        async with ConditionalDeletes(partner, signed, egress, silence) as deletes:
            yield ObjectPlace(
                partner, store, credentials, pace, checked, lambda: tunnel.refused, deletes
            )


@asynccontextmanager
async def _guarded(
    partner: Partner, url: str, egress: Egress, silence: float
) -> "AsyncGenerator[tuple[str, ClientConfig, Tunnel]]":
    client: ClientConfig = {
        "connect_timeout": timedelta(seconds=10),
        "read_timeout": timedelta(seconds=silence),
        # Counts until the last byte of a body: a large object over a slow line.
        "timeout": timedelta(hours=6),
    }
    tunnel = Tunnel(egress)
    if url.startswith("http://"):
        plain = await _plain(partner, url, egress)
        host = (urlsplit(plain).hostname or "").strip("[]")
        # Or a proxy of the environment would make the connection, to whatever address it likes.
        direct: ClientConfig = {"proxy_url": _NO_PROXY, "proxy_excludes": host, "allow_http": True}
        yield plain, {**client, **direct}, tunnel
        return
    async with tunnel.serve():
        yield url, {**client, "proxy_url": tunnel.url}, tunnel


async def _plain(partner: Partner, url: str, egress: Egress) -> str:
    """A URL without TLS, of an address that was checked, which is never a public one."""
    parts = urlsplit(url)
    try:
        address, *_ = await egress.addresses(parts.hostname or "", parts.port or 80)
    except AddressRefused as refusal:
        raise Denied(str(refusal)) from None
    except OSError as error:
        raise PartnerAway(
            partner.name, f"{partner.name} cannot be reached: {error.strerror or error}"
        ) from None
    if is_public(address):
        raise Denied(f"{partner.name} has a public address: https is needed")
    literal = f"[{address}]" if address.version == 6 else str(address)
    where = f"{literal}:{parts.port}" if parts.port else literal
    return urlunsplit((parts.scheme, where, parts.path, "", ""))


def _account(partner: Partner, credentials: Credentials) -> StorageAccount:
    """The storage account: by a connection string, or by its URL and a SAS.

    Raises:
        Denied: The connection string is malformed.
    """
    token = credentials.token or ""
    if ";" in token:
        try:
            return StorageAccount.from_connection_string(token)
        except ValueError as error:
            raise Denied(f"{partner.token} of {partner.name}: {error}") from None
    endpoint = _url(partner.host or "").rstrip("/")
    parts = urlsplit(endpoint)
    name = parts.path.strip("/") or (parts.hostname or "").partition(".")[0]
    return StorageAccount(name, endpoint, None, token.lstrip("?"))


def _url(host: str) -> str:
    return host if "://" in host else f"https://{host}"


def _region_of(host: str) -> str:
    parts = host.removeprefix("https://").split(".")
    return parts[1] if len(parts) > 3 and parts[-2:] == ["amazonaws", "com"] else _REGION
