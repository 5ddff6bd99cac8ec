"""`jobsettings.json` in a folder, on a file share, in the blob store or behind an address."""

import asyncio
import hashlib
import tempfile
from http import HTTPStatus
from pathlib import Path
from typing import Final

from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound, Unavailable
from adapters.ports.transfers import SettingsFile
from workflows.shared.contracts import BlobRef
from workflows.shared.errors import RuleViolation

MOST_BYTES: Final = 16 * 2**20
_SECONDS: Final = 30.0


class LocalSettings:
    """A file of the machine, or of a share that is mounted there.

    Args:
        path: Of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[tuple[int, int, int], SettingsFile] | None = None

    async def read(self) -> SettingsFile:
        """The file as it is now; it is read again when its size or time has changed.

        Raises:
            RuleViolation: There is none, or it is too long.
            Unavailable: It cannot be read at the moment.
        """
        return await asyncio.to_thread(self._read)

    def _read(self) -> SettingsFile:
        try:
            found = self._path.stat()
            version = (found.st_mtime_ns, found.st_size, found.st_ino)
            if self._known is None or self._known[0] != version:
                _refuse_long(found.st_size)
                self._known = version, _file(self._path.name, self._path.read_bytes())
        except FileNotFoundError as error:
            raise RuleViolation(f"there is no file {self._path.name} of job settings") from error
        except OSError as error:
            raise Unavailable(f"the job settings cannot be read: {error.strerror}") from error
        return self._known[1]


class StoredSettings:
    """A blob.

    Args:
        blobs: Its container.
        name: Its name.
        scratch: Folder for temporary files.
    """

    def __init__(self, blobs: Blobs, name: str, scratch: Path) -> None:
        self._blobs, self._name, self._scratch = blobs, name, scratch
        self._known: tuple[BlobRef, SettingsFile] | None = None

    async def read(self) -> SettingsFile:
        """The blob as it is now; it is read again when it has changed.

        Raises:
            RuleViolation: There is none, or it is too long.
            Unavailable: The blob store does not answer.
        """
        try:
            found = await self._blobs.stat(self._name)
            if self._known is None or self._known[0] != found:
                _refuse_long(found.size)
                self._known = found, await self._download()
        except BlobNotFound as error:
            raise RuleViolation(f"there is no blob {self._name} of job settings") from error
        return self._known[1]

    async def _download(self) -> SettingsFile:
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            target = Path(folder) / "settings"
            await self._blobs.download(self._name, target)
            return _file(self._name, target.read_bytes())


class RemoteSettings:
    """What an address answers.

    Args:
        url: The address; an operator has set it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: tuple[str, SettingsFile] | None = None

    async def read(self) -> SettingsFile:
        """What the address answers now.

        Raises:
            RuleViolation: It answers with something else, or with too much.
            Unavailable: It does not answer.
        """
        # The HTTP client takes 7 MB of memory, for workers whose settings are behind an address.
        import httpx

        headers = {} if self._known is None else {"If-None-Match": self._known[0]}
        try:
            async with (
                httpx.AsyncClient(timeout=_SECONDS) as client,
                client.stream("GET", self._url, headers=headers) as answer,
            ):
                if answer.status_code == HTTPStatus.NOT_MODIFIED and self._known is not None:
                    return self._known[1]
                if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise Unavailable(f"the job settings answer with {answer.status_code}")
                if answer.status_code != HTTPStatus.OK:
                    raise RuleViolation(f"the job settings answer with {answer.status_code}")
                text = bytearray()
                async for chunk in answer.aiter_bytes():
                    text += chunk
                    _refuse_long(len(text))
        except httpx.HTTPError as error:
            raise Unavailable(f"the job settings cannot be read: {type(error).__name__}") from error
        file = _file(httpx.URL(self._url).path.strip("/") or "settings", bytes(text))
        if (tag := answer.headers.get("ETag")) is not None:
            self._known = tag, file
        return file


def _refuse_long(size: int) -> None:
    if size > MOST_BYTES:
        raise RuleViolation(f"the job settings have over {MOST_BYTES // 2**20} MB")


def _file(name: str, text: bytes) -> SettingsFile:
    ref = BlobRef(name=name, size=len(text), sha256=hashlib.sha256(text).hexdigest())
    return SettingsFile(text, ref)
