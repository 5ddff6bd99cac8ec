"""A form upload as it arrives: small fields, and one file that is never held whole."""

import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Final

import python_multipart
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import Request

from adapters.files.formats import HEAD_BYTES
from workers.shared.gateway.http import requests
from workers.shared.services.bodies import printable
from workers.shared.services.errors import Refused, TooLarge, UnsupportedFile

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

FILE: Final = "file"
"""Name of the form field with the file."""
_MOST_FIELDS: Final = 32
_LONGEST_FIELD: Final = 4096
"""Bytes of a field's value."""
_LONGEST_NAME: Final = 255
"""Characters of a file name."""
_AROUND_FILE: Final = 1 << 20
"""Bytes of a request beside its file: fields, headers of parts, boundaries."""
_DISPOSITION: Final = b"content-disposition"


class Upload:
    """Fields before the file can be read after `open`, all of them after `finish`.

    The bytes of the file pass through `file` in between; nothing else keeps them.

    Attributes:
        filename: As the sender named it, without folders.
        fields: Field to value.
    """

    def __init__(
        self, request: Request, limit: int, check_beginning: Callable[[bytes, str], None]
    ) -> None:
        """Prepare to read a request.

        Args:
            request: Whose body has not been read.
            limit: Bytes of the file.
            check_beginning: Raises a `ServiceError` for a file that is not accepted, by its first
                `HEAD_BYTES` and its name.

        Raises:
            TooLarge: Its Content-Length is above the limit.
            UnsupportedFile: It is not a form upload.
            Refused: Its headers are malformed.
        """
        self.filename = ""
        self._limit = limit
        self._check_beginning = check_beginning
        self._refuse_length(request.headers.get("content-length", "0"))
        self._body = request.stream()
        self._form = _Form(_boundary(request.headers.get("content-type", "")))
        self.fields = self._form.fields
        self._received = 0
        self._file_bytes = 0

    async def open(self) -> None:
        """Read up to the beginning of the file.

        Raises:
            Refused: There is no file, or the form is malformed.
            TooLarge: There is too much before it.
        """
        while not self._form.file_begun:
            if not await self._pump():
                raise Refused(f"the form has no file; send one in the field {FILE!r}")
        self.filename = _bare_name(self._form.filename)
        if not self.filename:
            raise Refused("the file has no name; choose a file")

    async def file(self) -> AsyncGenerator[bytes]:
        """The bytes of the file, as soon as their beginning is accepted.

        Raises:
            ServiceError: Their beginning is not accepted.
            TooLarge: It exceeds the limit.
            Refused: The form ends within it.
        """
        head = bytearray()
        async for block in self._blocks():
            if len(head) >= HEAD_BYTES:
                yield block
                continue
            head += block
            if len(head) >= HEAD_BYTES:
                self._check_beginning(bytes(head), self.filename)
                yield bytes(head)
        if len(head) < HEAD_BYTES:
            self._check_beginning(bytes(head), self.filename)
            yield bytes(head)

    async def finish(self) -> Mapping[str, str]:
        """Read what comes after the file; all fields but the token of the form.

        Raises:
            Refused: The form is malformed, or has a second file.
            TooLarge: There is too much of it.
        """
        while await self._pump():
            pass
        if not self._form.ended:
            raise Refused("the form ends early; send it again")
        return {name: text for name, text in self._form.fields.items() if name != requests.FIELD}

    async def skip(self) -> None:
        """Read the fields that are left; what is left of the file is dropped.

        Raises:
            Refused: The form is malformed.
            TooLarge: There is too much of it.
        """
        while await self._pump():
            self._form.blocks.clear()

    async def _blocks(self) -> AsyncIterator[bytes]:
        while True:
            while self._form.blocks:
                block = self._form.blocks.popleft()
                self._file_bytes += len(block)
                if self._file_bytes > self._limit:
                    raise self._too_large()
                yield block
            if self._form.file_ended:
                return
            if not await self._pump():
                raise Refused("the upload ends in the middle of the file; send it again")

    async def _pump(self) -> bool:
        """Take the next piece of the request; False when there is none."""
        piece = await anext(self._body, b"")
        if not piece:
            return False
        self._received += len(piece)
        if self._received > self._limit + _AROUND_FILE:
            raise self._too_large()
        self._form.write(piece)
        return True

    def _refuse_length(self, header: str) -> None:
        with contextlib.suppress(ValueError):
            if int(header) > self._limit + _AROUND_FILE:
                raise self._too_large()

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"a file may have at most {self._limit:,} bytes; split it and send the parts"
        )


class _Form:
    """The parts of a form, as the parser finds them."""

    def __init__(self, boundary: bytes) -> None:
        self.fields: dict[str, str] = {}
        self.filename = ""
        self.blocks: deque[bytes] = deque()
        self.file_begun = False
        self.file_ended = False
        self.ended = False
        self._header = bytearray()
        self._header_value = bytearray()
        self._disposition = b""
        self._name: str | None = None
        """Of the field that is being read; None within the file."""
        self._value = bytearray()
        callbacks: MultipartCallbacks = {
            "on_part_begin": self._begin_part,
            "on_header_field": self._take_header,
            "on_header_value": self._take_header_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._enter_part,
            "on_part_data": self._take,
            "on_part_end": self._end_part,
            "on_end": self._end,
        }
        try:
            self._parser = python_multipart.MultipartParser(boundary, callbacks)
        except FormParserError as error:
            raise _malformed(error) from error

    def write(self, piece: bytes) -> None:
        """Read on.

        Raises:
            Refused: It is not a form.
        """
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise _malformed(error) from error

    def _begin_part(self) -> None:
        self._disposition = b""

    def _take_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _take_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _end_header(self) -> None:
        if bytes(self._header).lower() == _DISPOSITION:
            self._disposition = bytes(self._header_value)
        self._header.clear()
        self._header_value.clear()

    def _enter_part(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = _decoded(options.get(b"name", b""))
        if b"filename" not in options:
            self._enter_field(name)
        elif name != FILE or self.file_begun:
            raise Refused(f"send one file, in the field {FILE!r}")
        else:
            self.file_begun = True
            self.filename = _decoded(options[b"filename"])
            self._name = None

    def _enter_field(self, name: str) -> None:
        if not name or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise Refused("a part of the form has no proper name")
        if name in self.fields:
            raise Refused(f"the field {name!r} appears twice")
        if len(self.fields) >= _MOST_FIELDS:
            raise Refused(f"the form has more than {_MOST_FIELDS} fields")
        self._name = name

    def _take(self, data: bytes, start: int, end: int) -> None:
        if self._name is None:
            self.blocks.append(data[start:end])
            return
        self._value += data[start:end]
        if len(self._value) > _LONGEST_FIELD:
            raise Refused(f"the field {self._name!r} is longer than {_LONGEST_FIELD} bytes")

    def _end_part(self) -> None:
        if self._name is None:
            self.file_ended = True
            return
        self.fields[self._name] = _decoded(bytes(self._value))
        self._value.clear()

    def _end(self) -> None:
        self.ended = True


def _boundary(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    if kind != b"multipart/form-data":
        raise UnsupportedFile("send the file as a form upload (multipart/form-data)")
    if not options.get(b"boundary"):
        raise Refused("the Content-Type header has no boundary")
    return options[b"boundary"]


def _malformed(error: FormParserError) -> Refused:
    return Refused(f"the form is malformed: {printable(str(error))[:200]}")


def _decoded(text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")


def _bare_name(name: str) -> str:
    """A name without folders and control characters, short enough to keep."""
    bare = printable(name.replace("\\", "/").rsplit("/", 1)[-1]).strip()
    return bare if len(bare) <= _LONGEST_NAME else bare[: _LONGEST_NAME - 8] + bare[-8:]


async def whole_file(upload: Upload) -> AsyncGenerator[bytes]:
    """The file of a form that has been opened, which has to be its last part.

    Raises:
        Refused: A field comes after it.
    """
    before = dict(upload.fields)
    async for block in upload.file():
        yield block
    after = await upload.finish()
    if late := sorted(name for name, text in after.items() if before.get(name) != text):
        raise Refused(f"{late[0]}: comes after the file; send it before")


def any_file(head: bytes, name: str) -> None:
    """Accept a file by its beginning: what reads it says what is wrong with it."""
    if not head:
        raise Refused(f"{name} is empty")
