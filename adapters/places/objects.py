"""Object stores: Azure Blob and S3, through `obstore`.

What object stores answer, as errors of the ports.

`obstore` has classes for few of the answers, and texts for all of them: the status, and the code of
the store where its answer has one.

Sources: the lists of error codes of Amazon S3 and of Azure Blob Storage.

Deletes of objects that are refused where the object has changed.

`obstore` deletes whatever has the name. Azure Blob and Amazon S3 delete one version alone where the
request states its etag (`If-Match`, RFC 9110, 13.1.1): so that request is sent from here.

Sources: "Specifying conditional headers" of Azure Blob Storage; "DeleteObject" of Amazon S3.
"""

import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit, urlunsplit

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)

from adapters.azure.storage_account import StorageAccount, store_config
from adapters.http import AddressRefused, is_public
from adapters.places.base import BasePlace, Credentials, Pace, is_strong, no_bytes, probe_name
from adapters.places.egress import Egress, Tunnel
from adapters.places.writing import (
    BLOCK,
    WholeWrites,
    WriteRequest,
    checked,
    checked_pattern,
    sha256_of,
    taken,
)
from adapters.ports.errors import Denied, PortError, Throttled
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    LoginRefused,
    NameRefused,
    PartnerAway,
    PlaceError,
    Written,
)
from workflows.transfers.partners import Partner, Rename, ServerProfile
from workflows.transfers.paths import join, matcher, printable, split

if TYPE_CHECKING:
    import httpx
    from obstore import GetOptions
    from obstore.store import AzureStore, ClientConfig, RetryConfig, S3Store


_STATUS: Final = re.compile(
    r"status code: (\d{3})|status: (\d{3})|\(code: (\d{3})\)|\b(\d{3}) [A-Z][a-z]+ ?[A-Z]?"
)
_CODE: Final = re.compile(r"<Code>(\w+)</Code>|\(code: ([A-Za-z]\w+)\)")
_QUERY: Final = re.compile(r"\?\S*")
"""Of a URL: it may hold a signature."""
_ODD_KEY: Final = re.compile(r'invalid path: (?:Error parsing )?Path "(.*?)"')
"""Of an object in a list: the library has no name for it, and returns no list."""
_NO_CONTAINER: Final = ("ContainerNotFound", "NoSuchBucket", "container does not exist")
_LEASED: Final = ("LeaseIdMissing", "currently a lease")
_REFUSED: Final = frozenset({"AccessDenied", "AuthorizationPermissionMismatch"})
"""Of one object, or of all: rights are given by either."""
_NOT_LET_IN: Final = frozenset(
    {
        "AccountIsDisabled",
        "AllAccessDisabled",
        "AuthenticationFailed",
        "AuthorizationFailure",
        "ExpiredToken",
        "InvalidAccessKeyId",
        "InvalidToken",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
    }
)
"""Of the credentials or the account, whatever object is asked for."""
_BUSY: Final = frozenset({"ServerBusy", "SlowDown", "TooManyRequests"})
_NAMES: Final = frozenset(
    {"InvalidResourceName", "InvalidURI", "InvalidUri", "KeyTooLongError", "OutOfRangeInput"}
)


def answered(
    partner: Partner, credentials: Credentials, path: str, status: int, text: str
) -> PortError:
    """What an answer means that is not success, without secrets.

    Args:
        partner: Whose store it is.
        credentials: Kept out of the text.
        path: Of the object.
        status: Of HTTP.
        text: The store's name for the failure, and the beginning of the body.
    """
    name, shown, code = partner.name, printable(path), _first(_CODE, text)
    if found := _of_container_or_lease(partner, path, text):
        return found
    if status == 404:
        return FileMissing(f"there is no file {shown} at {name}")
    if status == 412:
        return FileChanged(f"{shown} is another one now")
    answer = credentials.hide(f"it answered {status} {code}".rstrip())
    return _by_status(name, shown, status, code, answer)


def failure(partner: Partner, credentials: Credentials, path: str, error: Exception) -> PortError:
    """What went wrong with an object, without secrets.

    Args:
        partner: Whose store it is.
        credentials: Kept out of the text.
        path: Of the object, or folder of a list.
        error: Of the library.
    """
    text, name, shown = str(error), partner.name, printable(path)
    code = _first(_CODE, text)
    if found := _of_container_or_lease(partner, path, text):
        return found
    if odd := _first(_ODD_KEY, text):
        return PlaceError(
            f"{name}, {shown}: nothing can be listed beside the key {printable(odd)}, which has an "
            "empty segment, `.` or `..`; give that object another key"
        )
    match error:
        case FileNotFoundError():
            return FileMissing(f"there is no file {shown} at {name}")
        case AlreadyExistsError():
            return taken(path)
        case PreconditionError():
            return FileChanged(f"{shown} is another one now")
        case PermissionDeniedError() | UnauthenticatedError():
            return _refused(name, shown, code)
        case _:
            answer = _QUERY.sub("", credentials.hide(text.partition("\n")[0]))[:300]
            return _by_status(name, shown, int(_first(_STATUS, text) or 0), code, answer)


def _of_container_or_lease(partner: Partner, path: str, text: str) -> PortError | None:
    name = partner.name
    if any(mark in text for mark in _NO_CONTAINER):
        return PlaceError(f"{name} has no container or bucket {printable(partner.container or '')}")
    if any(mark in text for mark in _LEASED):
        return PlaceError(
            f"{printable(path)} at {name} has a lease of another client: it cannot be changed"
        )
    return None


def _by_status(name: str, shown: str, status: int, code: str, answer: str) -> PortError:
    if status in (429, 503) or code in _BUSY:
        return Throttled(f"{name} asks for fewer requests: {answer}")
    if status in (401, 403, 407) or code in _REFUSED or code in _NOT_LET_IN:
        return _refused(name, shown, code)
    if code in _NAMES:
        return NameRefused(f"{shown} cannot be a name at {name} ({code})")
    if 400 <= status < 500 or (code and status < 500):
        return PlaceError(f"{name}, {shown}: {answer}")
    return PartnerAway(name, f"{name} cannot be reached: {answer}")


def _refused(name: str, shown: str, code: str) -> PortError:
    if code in _NOT_LET_IN:
        return LoginRefused(
            name,
            f"{name} does not accept our credentials ({code}); once that is put right, runs "
            "continue within five minutes",
        )
    return Denied(f"{name} refuses access to {shown}{f' ({code})' if code else ''}")


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return next(filter(None, found.groups()), "") if found else ""


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

            from adapters.places.https import http_client

            client = http_client(self.egress, Timeout(self.silence))
            self._client = await self._opened.enter_async_context(client)
        return self._client


_READ_BLOCK: Final = 2 << 20
_IN_FLIGHT: Final = 2
_MOST_PARTS: Final = 10_000
"""Of an object of Amazon S3; a blob of Azure takes five times as many."""
_NOT_OFFERED: Final = 501
_RAISED: Final = (BaseError, FileNotFoundError, TimeoutError, ConnectionError, ValueError)


class ObjectPlace(BasePlace):
    """Objects of one container or bucket.

    Args:
        partner: Whose it is.
        store: Connected to it.
        credentials: Kept out of what is said of failures.
        pace: Of its bytes.
        server_hash: The hash by which the store checks what it is sent; None: it does not.
        refusal: Why the newest connection was not permitted; None: it was.
        deletes: Deletes an object as long as it has not changed.
        part: Bytes of a part of an upload; some three of them are in memory.
    """

    reads_one_version = True

    def __init__(
        self,
        partner: Partner,
        store: "AzureStore | S3Store",
        credentials: Credentials,
        pace: Pace,
        server_hash: str | None,
        refusal: Callable[[], str | None],
        deletes: ConditionalDeletes,
        part: int = BLOCK,
    ) -> None:
        super().__init__(partner, pace)
        self._store, self._credentials = store, credentials
        self._server_hash, self._refusal = server_hash, refusal
        self._deletes, self._part = deletes, part

    @property
    def profile(self) -> ServerProfile | None:
        """An object appears whole, and replaces in one step."""
        return self._partner.profile or ServerProfile(rename=Rename.ATOMIC_REPLACE)

    @property
    def server_hash(self) -> str | None:
        """The hash by which the store checks what it is sent."""
        return self._server_hash

    async def probe(self, folder: str = "") -> ServerProfile:
        """Store an empty object of our own, and remove it."""
        path = probe_name(folder)
        await self.put(path, no_bytes(), 0, replaces=True)
        await self.remove(path)
        return ServerProfile(
            rename=Rename.ATOMIC_REPLACE, probed_at=datetime.now(UTC), probed_with=(path,)
        )

    async def entry(self, path: str) -> Entry | None:
        """An object; None: there is none."""
        try:
            with self._translated(path):
                found = await obstore.head_async(self._store, self._key(path))
        except FileMissing:
            return None
        except Denied as refused:
            raise await self._reason_of(refused) from None
        return Entry(path, found["size"], found["last_modified"], _tag(found["e_tag"]))

    async def _reason_of(self, refused: Denied) -> PortError:
        """Why an object is refused: the answer to a HEAD has no body that says so, a list has."""
        prefix = self._key(probe_name())
        try:
            with self._translated(""):
                await obstore.list_with_delimiter_async(self._store, prefix)
        except PartnerAway as away:
            return away
        except PortError:
            return refused
        return refused

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        """Objects that a pattern names; the store lists no folder below."""
        folder, name = split(checked_pattern(pattern))
        match, prefix = matcher(name).match, self._key(folder)
        start = len(prefix) + 1 if prefix else 0
        with self._translated(folder):
            listed = await obstore.list_with_delimiter_async(self._store, prefix or None)
        # Programs that know folders mark one by an empty object of its name.
        folders = {(each, 0) for each in listed["common_prefixes"]}
        files = (each for each in listed["objects"] if (each["path"], each["size"]) not in folders)
        named = ((each["path"][start:], each) for each in files)
        found = [
            Entry(join(folder, last), each["size"], each["last_modified"], _tag(each["e_tag"]))
            for last, each in named
            if last and match(last)
        ]
        return found[: most + 1]

    async def _blocks(self, entry: Entry, offset: int) -> AsyncGenerator[bytes]:
        # No range of an empty object can be asked for.
        options: GetOptions = {"if_match": entry.tag}
        if offset:
            options["range"] = {"offset": offset}
        with self._translated(entry.path):
            key = self._key(checked(entry.path))
            result = await obstore.get_async(self._store, key, options=options)
            blocks = result.stream(min_chunk_size=_READ_BLOCK)
        while True:
            with self._translated(entry.path):
                block = await anext(blocks, None)
            if block is None:
                return
            await self._pace(len(block))
            yield bytes(block)

    async def _written(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        return await WholeWrites(self).write(self._pace.of(chunks), order)

    async def put(
        self, path: str, blocks: AsyncIterator[bytes], size: int, *, replaces: bool
    ) -> None:
        """Store an object, in parts where it is large."""
        key = self._key(path)
        if size <= BLOCK:
            content = b"".join([block async for block in blocks])
            with self._translated(path):
                await obstore.put_async(
                    self._store,
                    key,
                    content,
                    mode="overwrite" if replaces else "create",
                    use_multipart=False,
                )
            return
        # Of parts there are only so many.
        part = max(self._part, -(-size // _MOST_PARTS))
        with self._translated(path):
            await obstore.put_async(
                self._store, key, blocks, chunk_size=part, max_concurrency=_IN_FLIGHT
            )

    async def move(self, entry: Entry, path: str) -> None:
        """Copy an object within the store, and delete it."""
        now = await self.stat(entry.path)
        self._check_same(entry, now)
        there = await self.entry(checked(path))
        if there is not None and not await self._is_copy(entry, there):
            raise taken(path)
        if there is None:
            await self._copy(entry, path)
        await self._remove_same(now)

    async def _copy(self, entry: Entry, path: str) -> None:
        """Copy an object that has to stay the same until the copy is there."""
        with self._translated(path):
            await obstore.copy_async(self._store, self._key(entry.path), self._key(path))
        copied = await self.stat(path)
        if copied.size != entry.size:
            raise PlaceError(
                f"the copy {printable(path)} has {copied.size:,} bytes instead of {entry.size:,}"
            )
        try:
            self._check_same(entry, await self.stat(entry.path))
        except (FileChanged, FileMissing):
            # It cannot be known which of the two was copied.
            await self.remove(path)
            raise

    async def _is_copy(self, entry: Entry, there: Entry) -> bool:
        if entry.size != there.size:
            return False
        first = await sha256_of(self.content(entry.path))
        return first == await sha256_of(self.content(there.path))

    async def remove(self, path: str) -> bool:
        """Remove an object."""
        try:
            with self._translated(path):
                await obstore.delete_async(self._store, self._key(path))
        except FileMissing:
            return False
        return True

    async def _remove_same(self, entry: Entry) -> bool:
        """Remove an object in one step with the comparison, where the store offers that."""
        if entry.tag is None or not is_strong(entry.tag):
            return await self.remove(entry.path)
        with self._translated(entry.path):
            status, text = await self._deletes.delete(self._key(entry.path), entry.tag)
        if 200 <= status < 300:
            return True
        if status == _NOT_OFFERED:
            self._check_same(entry, await self.stat(entry.path))
            return await self.remove(entry.path)
        problem = answered(self._partner, self._credentials, entry.path, status, text)
        if isinstance(problem, FileMissing):
            return False
        raise problem

    def _key(self, path: str) -> str:
        root = (self._partner.root or "").strip("/")
        return f"{root}/{path}" if root and path else root or path

    @contextmanager
    def _translated(self, path: str) -> Generator[None]:
        try:
            yield
        except PortError:
            raise
        except _RAISED as error:
            found = failure(self._partner, self._credentials, path, error)
            refusal = self._refusal()
            if refusal is not None and isinstance(found, PartnerAway | Denied):
                raise Denied(refusal) from None
            raise found from None


def _tag(etag: str | None) -> str | None:
    """As headers write it: lists leave the quotes out."""
    return etag if etag is None or etag.endswith('"') else f'"{etag}"'


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
