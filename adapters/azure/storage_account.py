"""An Azure storage account by its connection string, and the requests that `obstore` lacks.

Source: "Authorize with Shared Key" of the Azure Storage REST reference.
"""

import base64
import binascii
import hashlib
import hmac
import http.client
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    from obstore.store import AzureConfig

_VERSION = "2021-12-02"
_TIMEOUT_SECONDS = 60
_SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)

# Public by design: every emulator of Azure Storage has this one account.
EMULATOR_ACCOUNT: Final = "devstoreaccount1"
EMULATOR_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
_EMULATOR_ENDPOINT: Final = f"http://127.0.0.1:10000/{EMULATOR_ACCOUNT}"


@dataclass(frozen=True)
class Answer:
    """An answer of the service."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: str

    @property
    def error(self) -> str:
        """The service's name for the failure, such as `BlobNotFound`; '' when it gives none."""
        return self.headers.get("x-ms-error-code", "")


@dataclass(frozen=True)
class StorageAccount:
    """Where an account is and how to prove who asks."""

    name: str
    endpoint: str
    """URL of the blob service, without a slash at its end."""
    key: str | None = field(default=None, repr=False)
    """Account key, base64."""
    sas: str | None = field(default=None, repr=False)
    """Shared access signature, without '?'."""

    @classmethod
    def from_connection_string(cls, connection_string: str) -> "StorageAccount":
        """Take a connection string apart.

        Raises:
            ValueError: A part is missing or malformed; the message says which, and no secret.
        """
        fields = _fields(connection_string)
        if fields.get("usedevelopmentstorage", "").lower() == "true":
            return cls(EMULATOR_ACCOUNT, _EMULATOR_ENDPOINT, EMULATOR_KEY)
        key = fields.get("accountkey")
        sas = fields.get("sharedaccesssignature", "").lstrip("?") or None
        if key is None and sas is None:
            raise ValueError("the storage connection string has no AccountKey")
        _check_key(key)
        endpoint = fields.get("blobendpoint", "").rstrip("/")
        name = fields.get("accountname") or (urlsplit(endpoint).hostname or "").partition(".")[0]
        if not name:
            raise ValueError("the storage connection string has no AccountName")
        if not endpoint:
            scheme = fields.get("defaultendpointsprotocol", "https")
            suffix = fields.get("endpointsuffix", "core.windows.net")
            endpoint = f"{scheme}://{name}.blob.{suffix}"
        if urlsplit(endpoint).scheme not in ("http", "https"):
            raise ValueError("the storage connection string's BlobEndpoint is not an http(s) URL")
        return cls(name, endpoint, key, sas)

    def url(self, path: str) -> str:
        """URL of a container or blob, by its path below the endpoint."""
        return f"{self.endpoint}/{quote(path)}"

    def authorised_url(self, path: str) -> str:
        """As `url`, for another service to read from: with the signature, if there is one."""
        return f"{self.url(path)}?{self.sas}" if self.sas else self.url(path)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Answer:
        """Send one request and wait for its answer, whatever its status.

        Raises:
            OSError: The service cannot be reached or does not answer in time.
            http.client.HTTPException: What answers does not speak HTTP.
        """
        length = {"content-length": str(len(body))}
        url, sent = self.signed(method, path, query=query, headers={**length, **(headers or {})})
        parts = urlsplit(url)
        is_https = parts.scheme == "https"
        connect = http.client.HTTPSConnection if is_https else http.client.HTTPConnection
        connection = connect(parts.netloc, timeout=_TIMEOUT_SECONDS)
        try:
            target = urlunsplit(("", "", parts.path, parts.query, ""))
            connection.request(method, target, body, sent)
            response = connection.getresponse()
            received = {name.lower(): value for name, value in response.getheaders()}
            return Answer(
                response.status, received, response.read(1 << 16).decode("utf-8", "replace")
            )
        finally:
            connection.close()

    def signed(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[str, dict[str, str]]:
        """URL and headers, in lower case, of a request that proves who asks."""
        sent = {
            "x-ms-date": formatdate(usegmt=True),
            "x-ms-version": _VERSION,
            **{name.lower(): value for name, value in (headers or {}).items()},
        }
        url, asked = self.url(path), urlencode(query or {})
        if self.key is not None:
            place = urlsplit(url).path
            sent["authorization"] = self._authorization(method, place, query or {}, sent)
        elif self.sas:
            asked = "&".join(filter(None, (asked, self.sas)))
        return f"{url}?{asked}" if asked else url, sent

    def _authorization(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> str:
        def signed(name: str) -> str:
            value = headers.get(name, "")
            return "" if name == "content-length" and value == "0" else value

        own = sorted((name, value) for name, value in headers.items() if name.startswith("x-ms-"))
        lines = [method, *map(signed, _SIGNED_HEADERS)]
        lines += [f"{name}:{value}" for name, value in own]
        lines.append(f"/{self.name}{path}")
        lines += [f"{name.lower()}:{value}" for name, value in sorted(query.items())]
        key = base64.b64decode(self.key or "")
        digest = hmac.new(key, "\n".join(lines).encode(), hashlib.sha256).digest()
        return f"SharedKey {self.name}:{base64.b64encode(digest).decode()}"


def _fields(connection_string: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in connection_string.split(";"):
        name, equals, value = part.strip().partition("=")
        if name and not equals:
            raise ValueError("the storage connection string is not a list of name=value; pairs")
        if name:
            fields[name.lower()] = value
    return fields


def _check_key(key: str | None) -> None:
    try:
        base64.b64decode(key or "", validate=True)
    except binascii.Error as error:
        raise ValueError("the storage connection string's AccountKey is not base64") from error


def store_config(account: StorageAccount) -> "AzureConfig":
    """How `obstore` signs in at an account."""
    # The kind is named, or variables of the environment might choose another.
    if account.key is not None:
        return {
            "endpoint": account.endpoint,
            "account_name": account.name,
            "account_key": account.key,
            "credential_type": "access_key",
        }
    return {
        "endpoint": account.endpoint,
        "account_name": account.name,
        "sas_key": account.sas or "",
        "credential_type": "sas_token",
    }
