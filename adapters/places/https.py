"""HTTPS servers: files by GET, PUT and DELETE; calls."""

import re
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import quote

import httpx

from adapters.guarded_http import GuardedTransport
from adapters.http import AddressRefused, literal, retry_after
from adapters.places.base import BasePlace, Credentials, Pace, is_strong
from adapters.places.egress import Egress
from adapters.places.writing import WholeWrites, WriteRequest, checked, checked_pattern, taken
from adapters.ports.errors import Denied, Throttled
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    HttpAnswer,
    LoginRefused,
    PartnerAway,
    PlaceError,
    Written,
)
from workflows.transfers.partners import Partner, Rename, ServerProfile
from workflows.transfers.paths import has_wildcards, printable

SILENCE_SECONDS: Final = 60.0
_BLOCK: Final = 1 << 20
_ANSWER_BYTES: Final = 2_000
_IN_TROUBLE: Final = (500, 502, 503, 504)
_UNAUTHORIZED: Final = 401
"""Of the credentials (RFC 9110, 15.5.2)."""
_FORBIDDEN: Final = 403
"""It may be of the path alone, and of a folder often is: many servers list none."""
_REFUSE_HEAD: Final = (403, 405, 501)
_CANNOT_READ: Final = (401, 403, 404, 405, 501)
_START: Final = re.compile(r"bytes\s+(\d+)-", re.IGNORECASE)
_UNVERIFIED: Final = "accepted by the server, which lets nothing be read back"


class HttpsPlace(BasePlace):
    """Files and calls at one server; redirects are not followed.

    Args:
        partner: Whose it is.
        client: Connects to permitted addresses only.
        credentials: Kept out of what is said of failures.
        pace: Of its bytes.
    """

    def __init__(
        self, partner: Partner, client: httpx.AsyncClient, credentials: Credentials, pace: Pace
    ) -> None:
        super().__init__(partner, pace)
        self._client, self._credentials = client, credentials
        self._base = _base(partner)

    @property
    def profile(self) -> ServerProfile | None:
        """What becomes of a PUT is the server's business: it answers when it has the whole file."""
        return self._partner.profile or ServerProfile(rename=Rename.DIRECT)

    @property
    def server_hash(self) -> str | None:
        """None is agreed on."""
        return None

    async def probe(self, folder: str = "") -> ServerProfile:
        """See that it answers; nothing is written, for the effects of a PUT are unknown."""
        await self.ping()
        await self.call("HEAD", "/" if not folder else f"/{folder}", {})
        return ServerProfile(rename=Rename.DIRECT, probed_at=datetime.now(UTC))

    async def ping(self) -> None:
        """Ask for its root folder: names that are not there are answered with anything.

        Raises:
            LoginRefused: It does not accept our credentials.
        """
        name, folder = self._partner.name, self._partner.probe_folder or ""
        status = (await self._sent("HEAD", self._url(folder), folder or "/")).status_code
        # Who names a folder says that our credentials open it.
        if status == _UNAUTHORIZED or (folder and status == _FORBIDDEN):
            raise LoginRefused(
                name,
                f"{name} does not accept {self._credentials_named}: it answered {status}; once "
                "that is put right, runs continue within five minutes",
            )
        if status in _IN_TROUBLE:
            raise PartnerAway(name, f"{name} answered {status}")

    async def stat(self, path: str) -> Entry:
        """One file."""
        answer = await self._looked(checked(path))
        await self._check(answer, path)
        return _entry(path, answer.headers)

    async def entry(self, path: str) -> Entry | None:
        """A file; None: there is none, or the server does not say."""
        answer = await self._looked(path)
        if answer.status_code in _CANNOT_READ:
            return None
        await self._check(answer, path)
        return _entry(path, answer.headers)

    async def list(self, pattern: str, most: int) -> Sequence[Entry]:
        """The one file of that name: HTTP has no lists."""
        if has_wildcards(checked_pattern(pattern)):
            raise Denied(f"{printable(pattern)}: files of an HTTPS server cannot be listed")
        try:
            # A file that we may not see is not one that is missing.
            return [await self.stat(pattern)]
        except FileMissing:
            return []

    async def _blocks(self, entry: Entry, offset: int) -> AsyncGenerator[bytes]:
        path = checked(entry.path)
        sent = self._headers()
        if entry.tag and is_strong(entry.tag):
            sent["If-Match"] = entry.tag
        if offset:
            sent["Range"] = f"bytes={offset}-"
        with self._translated(path):
            async with self._client.stream("GET", self._url(path), headers=sent) as answer:
                if answer.status_code in (412, 416):
                    raise FileChanged(f"{printable(path)} is another file now")
                await self._check(answer, path)
                _require_start(answer, offset, path)
                if not entry.size:
                    # Where a size was stated, it tells as well.
                    _require_end(answer, path)
                # A server that knows of no ranges sends the file from its beginning.
                passed_over = 0 if answer.status_code == 206 else offset
                async for block in answer.aiter_raw(_BLOCK):
                    await self._pace(len(block))
                    kept, passed_over = block[passed_over:], max(0, passed_over - len(block))
                    if kept:
                        yield kept

    async def _written(self, chunks: AsyncIterator[bytes], order: WriteRequest) -> Written:
        return await _HttpsWrites(self).write(self._pace.of(chunks), order)

    async def put(
        self, path: str, blocks: AsyncIterator[bytes], size: int, *, replaces: bool
    ) -> None:
        """Send a file, whose length is said before."""
        headers = {**self._headers(), "Content-Length": str(size)}
        if not replaces:
            headers["If-None-Match"] = "*"
        with self._translated(path):
            answer = await self._client.put(self._url(path), content=blocks, headers=headers)
        if answer.status_code == 412:
            raise taken(path)
        await self._check(answer, path)

    async def is_readable(self, path: str) -> bool:
        """Whether the server lets a file be read that was put."""
        return (await self._looked(path)).status_code not in _CANNOT_READ

    async def move(self, entry: Entry, path: str) -> None:
        """HTTP has no moves."""
        raise Denied("files of an HTTPS server cannot be moved")

    async def remove(self, path: str) -> bool:
        """Delete a file."""
        return await self._deleted(path, {})

    async def _remove_same(self, entry: Entry) -> bool:
        """Delete a file; a server that knows the header deletes no other version."""
        tag = entry.tag if is_strong(entry.tag) else None
        return await self._deleted(entry.path, {"If-Match": tag} if tag else {})

    async def _deleted(self, path: str, conditions: Mapping[str, str]) -> bool:
        answer = await self._sent("DELETE", self._url(path), path, conditions)
        if answer.status_code in (404, 410):
            return False
        if answer.status_code == 412:
            raise FileChanged(f"{printable(path)} is another file now")
        await self._check(answer, path)
        return True

    async def call(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: AsyncIterator[bytes] | None = None,
        size: int = 0,
    ) -> HttpAnswer:
        """Send one request; whatever the server answers is not a failure."""
        length = {"Content-Length": str(size)} if body is not None else {}
        sent = {**headers, **self._headers(), **length}
        url = self._base + quote(path if path.startswith("/") else f"/{path}", safe="/?&=%+,:;@~")
        with self._translated(path):
            async with self._client.stream(method, url, headers=sent, content=body) as answer:
                text = b""
                async for piece in answer.aiter_bytes():
                    text += piece
                    if len(text) >= _ANSWER_BYTES:
                        break
        shown = self._credentials.hide(text[:_ANSWER_BYTES].decode("utf-8", "replace"))
        if answer.status_code == 429:
            raise self._throttled(answer)
        return HttpAnswer(answer.status_code, shown)

    async def _looked(self, path: str) -> httpx.Response:
        """What the server says of a file: some answer only who asks for its bytes as well."""
        url = self._url(path)
        answer = await self._sent("HEAD", url, path)
        if answer.status_code not in _REFUSE_HEAD:
            return answer
        with self._translated(path):
            async with self._client.stream("GET", url, headers=self._headers()) as answer:
                return answer

    async def _sent(
        self, method: str, url: str, path: str, more: Mapping[str, str] | None = None
    ) -> httpx.Response:
        headers = {**self._headers(), **(more or {})}
        with self._translated(path):
            return await self._client.request(method, url, headers=headers)

    def _headers(self) -> dict[str, str]:
        # A packed answer has another length and tag than the file.
        headers = {"User-Agent": "docflow", "Accept-Encoding": "identity"}
        if self._credentials.token:
            headers["Authorization"] = f"Bearer {self._credentials.token}"
        elif self._partner.user and self._credentials.password:
            known = f"{self._partner.user}:{self._credentials.password}".encode()
            headers["Authorization"] = f"Basic {b64encode(known).decode()}"
        return headers

    def _url(self, path: str) -> str:
        root = (self._partner.root or "").strip("/")
        return f"{self._base}/{quote(f'{root}/{path}' if root else path)}"

    @property
    def _credentials_named(self) -> str:
        """What the record refers to, for people."""
        partner = self._partner
        if partner.token:
            return f"our token {partner.token}"
        if partner.user and partner.password:
            return f"the user {partner.user} with the password {partner.password}"
        return "requests without credentials, and its record names none"

    async def _check(self, answer: httpx.Response, path: str) -> None:
        """See that an answer is a success.

        Raises:
            LoginRefused: It refuses our credentials, for its root folder as well.
            PortError: It is none for another reason.
        """
        status, name = answer.status_code, self._partner.name
        if 200 <= status < 300:
            return
        if status in (404, 410):
            raise FileMissing(f"there is no file {printable(path)} at {name}")
        if status in (429, 503):
            raise self._throttled(answer)
        if status in (_UNAUTHORIZED, _FORBIDDEN):
            # What the outage asks for as well: else that would be over at once.
            await self.ping()
            whom = self._credentials_named
            raise Denied(f"{name} refuses {printable(path)} to {whom}: it answered {status}")
        if status in (405, 407, 451, 501):
            raise Denied(f"{name} refuses {printable(path)}: it answered {status}")
        if 300 <= status < 400:
            raise Denied(f"{name} answered {status}, a redirect, which is not followed")
        if status >= 500:
            raise PartnerAway(name, f"{name} answered {status}")
        raise PlaceError(f"{name}, {printable(path)}: it answered {status}")

    def _throttled(self, answer: httpx.Response) -> Throttled:
        asked = retry_after(answer.headers.get("Retry-After"))
        return Throttled(f"{self._partner.name} answered {answer.status_code}", asked)

    @contextmanager
    def _translated(self, path: str) -> Generator[None]:
        name = self._partner.name
        try:
            yield
        except AddressRefused as refusal:
            raise Denied(str(refusal)) from None
        except httpx.InvalidURL:
            raise Denied(f"{printable(path)} at {name} is not a URL") from None
        except (httpx.HTTPError, OSError) as error:
            raise PartnerAway(name, f"{name} cannot be reached: {_reason(error)}") from None


class _HttpsWrites(WholeWrites):
    """Where nothing can be read back, the answer of the server is all there is."""

    def __init__(self, place: HttpsPlace) -> None:
        super().__init__(place)
        self._place = place

    async def _verified(self, order: WriteRequest, path: str) -> Written:
        if not await self._place.is_readable(path):
            return Written(Entry(path, order.size), _UNVERIFIED)
        return await super()._verified(order, path)


@asynccontextmanager
async def https(
    partner: Partner,
    credentials: Credentials,
    egress: Egress,
    pace: Pace,
    silence: float = SILENCE_SECONDS,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[HttpsPlace]:
    """A server, for the length of the block.

    Raises:
        Denied: It is to be reached without TLS, and is not this machine.
    """
    base = _base(partner)
    host = literal(httpx.URL(base).host)
    if base.startswith("http:") and not (egress.local and host is not None and host.is_loopback):
        raise Denied(f"{partner.name} is to be reached without TLS: https is needed")
    async with http_client(egress, httpx.Timeout(silence, connect=15.0), tls) as client:
        yield HttpsPlace(partner, client, credentials, pace)


def _require_start(answer: httpx.Response, offset: int, path: str) -> None:
    """See that a part of a file begins where it was asked for: its length alone tells nothing."""
    said = _START.match(answer.headers.get("Content-Range", ""))
    if answer.status_code == 206 and said is not None and int(said[1]) != offset:
        raise PlaceError(f"{printable(path)}: the server sent another part than it was asked for")


def _require_end(answer: httpx.Response, path: str) -> None:
    """See that the end of an answer can be told from a connection that broke."""
    is_chunked = "chunked" in answer.headers.get("Transfer-Encoding", "")
    is_framed = is_chunked or answer.http_version not in ("HTTP/1.0", "HTTP/1.1")
    if not is_framed and "Content-Length" not in answer.headers:
        raise PlaceError(
            f"{printable(path)}: the server states no length and sends no chunks, so a file that "
            "is cut off would look whole"
        )


def _base(partner: Partner) -> str:
    host = partner.host or ""
    url = (host if "://" in host else f"https://{host}").rstrip("/")
    return f"{url}:{partner.port}" if partner.port else url


def _entry(path: str, headers: httpx.Headers) -> Entry:
    changed = headers.get("Last-Modified")
    try:
        moment = parsedate_to_datetime(changed) if changed else None
    except ValueError:
        moment = None
    # 0: not stated; the file is read to its end.
    return Entry(
        path,
        int(headers.get("Content-Length", 0)),
        moment,
        (headers.get("ETag") or "")[:256] or None,
    )


def _reason(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    return type(error).__name__


def http_client(
    egress: Egress, timeout: httpx.Timeout, tls: ssl.SSLContext | None = None
) -> httpx.AsyncClient:
    """Make a client; no proxy, which would make the connection to whatever address it likes."""
    guarded = GuardedTransport(egress.permitted, egress.resolve, tls)
    return httpx.AsyncClient(
        transport=_CheckedHost(egress, guarded), timeout=timeout, trust_env=False
    )


class _CheckedHost(httpx.AsyncBaseTransport):
    """Checks the name of a host before a transport checks its addresses."""

    def __init__(self, egress: Egress, inner: httpx.AsyncBaseTransport) -> None:
        self._egress, self._inner = egress, inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request.

        Raises:
            AddressRefused: The host may not be connected to.
        """
        self._egress.check_host(request.url.host)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._inner.aclose()
