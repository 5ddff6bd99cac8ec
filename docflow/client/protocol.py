"""What both clients share: requests, problems, retries and server-sent events; nothing is sent."""

import json
import os
import random
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import date
from io import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol, TypeVar, cast
from urllib.parse import quote

import httpx

from docflow.client.errors import GatewayUnreachable, Problem

Item_co = TypeVar("Item_co", covariant=True)

TRIES: Final = 5
"""Of one request."""
LONGEST_PAUSE: Final = 30.0
"""Seconds between two tries."""
OVER: Final = 204
"""Status of a stream that has no more events."""
_SAFE: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_AWAY: Final = frozenset({502, 503, 504})
_TOO_MANY: Final = 429
_PROBLEM: Final = "urn:docflow:problem:"


class Page(Protocol[Item_co]):
    """Some items of a list."""

    @property
    def items(self) -> Sequence[Item_co]: ...

    @property
    def next(self) -> str | None: ...


@dataclass
class SentFile:
    """A file of a request.

    Args:
        content: Open for reading, at its beginning.
        name: File name that the gateway gets.
        progress: Called with the bytes sent and the bytes in all.
    """

    content: BinaryIO
    name: str
    progress: Callable[[int, int], None] | None = None
    _size: int = field(init=False)

    def __post_init__(self) -> None:
        self._size = self.content.seek(0, SEEK_END)
        self.content.seek(0)

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as httpx asks for them."""
        block = self.content.read(size)
        if self.progress is not None and block:
            self.progress(self.content.tell(), self._size)
        return block

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move in the file, as httpx does to know its size."""
        return self.content.seek(offset, whence)

    def tell(self) -> int:
        """Where it is."""
        return self.content.tell()


File = Path | SentFile


@dataclass(frozen=True)
class Request:
    """One request to the API.

    Attributes:
        method: HTTP method.
        path: With its values filled in.
        query: Parameters; None is not sent.
        body: JSON; of a form: its fields.
        files: Of a form, by field; None: it is no form.
        key: Idempotency key.
        if_match: ETag that the object must have.
        to: Where an answer that is a file is written.
    """

    method: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict[str, Any])
    body: Mapping[str, Any] | None = None
    files: Mapping[str, File] | None = None
    key: str | None = None
    if_match: str | None = None
    to: Path | None = None

    @property
    def may_be_repeated(self) -> bool:
        """A second time changes nothing."""
        return self.key is not None or (self.method in _SAFE and self.if_match is None)

    @contextmanager
    def opened(self, last_event_id: str | None) -> Generator[dict[str, Any]]:
        """The arguments of `httpx.Client.build_request`; its files are open within the block."""
        headers = {
            "Idempotency-Key": self.key,
            "If-Match": self.if_match,
            "Last-Event-ID": last_event_id,
        }
        made: dict[str, Any] = {"params": _given(self.query), "headers": _given(headers)}
        with ExitStack() as opened:
            if self.files is not None:
                body = _given(self.body or {})
                made["data"] = {name: _form(value) for name, value in body.items()}
                made["files"] = {name: _opened(file, opened) for name, file in self.files.items()}
            elif self.body is not None:
                made["json"] = _given(self.body)
            yield made


def new_key() -> str:
    """A new idempotency key."""
    return uuid.uuid4().hex


def place(template: str, **values: object) -> str:
    """A path with its values; the slashes of an id stay."""
    return template.format(**{name: quote(str(value)) for name, value in values.items()})


def parts(beginning: str, values: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Fields of a form whose names have the same beginning."""
    return {f"{beginning}{name}": value for name, value in (values or {}).items()}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _form(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _opened(file: File, opened: ExitStack) -> tuple[str, SentFile]:
    if isinstance(file, Path):
        file = SentFile(opened.enter_context(file.open("rb")), file.name)
    file.seek(0)
    return file.name, file


def pause_before(number: int, request: Request, got: httpx.Response | Exception) -> float | None:
    """Seconds until the next try.

    Args:
        number: Tries so far.
        request: What was tried.
        got: The answer, or why there is none.

    Returns:
        None: The request is not tried again.
    """
    if number >= TRIES:
        return None
    if isinstance(got, httpx.Response):
        refused_early = got.status_code == _TOO_MANY
        if not (refused_early or (got.status_code in _AWAY and request.may_be_repeated)):
            return None
        asked = got.headers.get("Retry-After", "")
        if asked.isdecimal():
            return min(float(asked), LONGEST_PAUSE)
    elif not (request.may_be_repeated or isinstance(got, httpx.ConnectError)):
        return None
    return min(0.2 * 2**number, LONGEST_PAUSE) * random.uniform(0.5, 1)


def refuse(response: httpx.Response) -> None:
    """Raise what the gateway refused; the body has been read.

    Raises:
        Problem: The status says so.
        GatewayUnreachable: No gateway of docflow answered.
    """
    if response.is_success:
        return
    found = _json_of(response)
    if not isinstance(found, dict) or "type" not in found:
        raise GatewayUnreachable(
            f"{response.url} answered {response.status_code} and is no gateway of docflow"
        )
    more = cast("dict[str, Any]", found)
    title = more.pop("title", response.reason_phrase)
    code = more.pop("type").removeprefix(_PROBLEM)
    detail = more.pop("detail", title)
    more.pop("status", None)
    raise Problem(response.status_code, code, detail, more)


def _json_of(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


class EventReader:
    """Server-sent events, line by line.

    Attributes:
        last_id: Of the last whole event; a stream that breaks continues behind it.
    """

    def __init__(self) -> None:
        self.last_id: str | None = None
        self._id: str | None = None
        self._data: list[str] = []

    def read(self, line: str) -> Iterator[str]:
        """The data of the event that a line ends, if it ends one."""
        if not line:
            data, self._data = self._data, []
            self.last_id = self._id
            if data:
                yield "\n".join(data)
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "id":
            self._id = value

    def forget_rest(self) -> None:
        """Forget the event that the end of a stream has cut off."""
        self._id, self._data = self.last_id, []


@contextmanager
def new_file(target: Path) -> Generator[BinaryIO]:
    """A file that stands at `target` once the block has written all of it.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    partial = target.with_name(f"{target.name}.{new_key()}.part")
    try:
        with partial.open("xb") as file:
            yield file
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
