"""Blobs in an S3 bucket, or in one of a store that speaks as S3 does."""

import re
import uuid
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    PermissionDeniedError,
    UnauthenticatedError,
)
from obstore.store import S3Store

from adapters.object_blobs import ObjectBlobs
from adapters.ports.errors import BlobNotFound, PortError, Throttled, Unavailable
from workflows.shared.contracts import BlobRef
from workflows.shared.dependencies import Dependency

if TYPE_CHECKING:
    from obstore.store import S3Config

_BLOCK: Final = 5 << 20
"""S3 takes at most 10,000 of them for one object, of at least 5 MB."""
_PROBED: Final = "docflow-probe/"
_UNFINISHED: Final = "docflow-unfinished"
"""Folder of objects that have not got their name yet."""
_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_UNRESOLVED: Final = "dns error"
_QUERY: Final = re.compile(r"\?\S*")
"""Of a URL: it may hold a signature."""
_BUSY: Final = frozenset({"SlowDown", "ServiceUnavailable", "TooManyRequests"})
_WRONG: Final = frozenset(
    {
        *("AccessDenied", "AuthorizationHeaderMalformed", "ExpiredToken", "InvalidAccessKeyId"),
        *("InvalidToken", "PermanentRedirect", "SignatureDoesNotMatch"),
    }
)
"""Codes that say that a setting is wrong."""


@dataclass(frozen=True)
class Bucket:
    """A bucket, and who asks."""

    name: str
    region: str
    endpoint_url: str | None = None
    """Of another store that speaks as S3 does; None: AWS."""
    access_key_id: str | None = None
    """None: the role of the machine, container or pod, or AWS_ACCESS_KEY_ID."""
    secret_access_key: str | None = field(default=None, repr=False)


class S3Blobs(ObjectBlobs):
    """One folder of a bucket."""

    def __init__(self, bucket: Bucket, folder: str) -> None:
        """Use a bucket that exists.

        Args:
            bucket: Where.
            folder: Begins the names of all objects.
        """
        self._bucket = bucket.name
        config: S3Config = {
            "region": bucket.region,
            "checksum_algorithm": "sha256",
            # With a copy in parts, S3 refuses to replace what is there by now.
            "copy_if_not_exists": "multipart",
        }
        if bucket.endpoint_url is not None:
            config["endpoint"] = bucket.endpoint_url
            config["virtual_hosted_style_request"] = False
        if bucket.access_key_id is not None and bucket.secret_access_key is not None:
            config["access_key_id"] = bucket.access_key_id
            config["secret_access_key"] = bucket.secret_access_key
        store = S3Store(
            bucket.name,
            prefix=folder,
            config=config,
            client_options={
                "allow_http": (bucket.endpoint_url or "").startswith("http://"),
                "connect_timeout": timedelta(seconds=5),
                "read_timeout": timedelta(seconds=30),
                # Counts until the last byte of a body: a large blob over a slow line.
                "timeout": timedelta(hours=1),
            },
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=30)},
        )
        super().__init__(store, _BLOCK)

    async def probe(self) -> None:
        """List a folder that need not be there."""
        await self.list(_PROBED, 1)

    async def stat(self, name: str) -> BlobRef:
        """Size and etag."""
        try:
            return await super().stat(name)
        except BlobNotFound:
            # An answer without a body does not say whether the bucket is there.
            await self.probe()
            raise

    async def copy(self, source: str, target: str) -> BlobRef:
        """Copy within the bucket, without the bytes passing through here."""
        with self._translated(source):
            await obstore.copy_async(self._store, source, target)
        return await self.stat(target)

    async def delete(self, name: str, *, etag: str | None = None) -> bool:
        """Delete an object, if it is still at `etag`: S3 has the same one for the same bytes."""
        try:
            found = await self.stat(name)
        except BlobNotFound:
            return False
        if etag is not None and found.etag != etag:
            return False
        with self._translated(name):
            await obstore.delete_async(self._store, name)
        return True

    async def _create_from_blocks(self, name: str, blocks: AsyncIterator[bytes]) -> str | None:
        """Write another object, and give it its name where there is none: that is atomic."""
        unfinished = f"{_UNFINISHED}/{uuid.uuid4().hex}"
        try:
            with self._translated(name):
                await obstore.put_async(
                    self._store, unfinished, blocks, chunk_size=_BLOCK, max_concurrency=2
                )
                await obstore.copy_async(self._store, unfinished, name, overwrite=False)
        finally:
            with suppress(BaseError, FileNotFoundError):
                await obstore.delete_async(self._store, unfinished)
        return (await self.stat(name)).etag

    @contextmanager
    def _translated(self, name: str) -> Generator[None]:
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" in str(error):
                raise self._wrong(f"there is no bucket {self._bucket!r}") from error
            raise BlobNotFound(f"there is no blob {name!r}") from error
        except AlreadyExistsError as error:
            raise FileExistsError(f"there is a blob {name!r} already") from error
        except (PermissionDeniedError, UnauthenticatedError) as error:
            raise self._wrong(f"the bucket {self._bucket!r} refuses access to {name!r}") from error
        except (BaseError, TimeoutError, ConnectionError) as error:
            raise self._failure(str(error), f"blob {name!r}") from error

    def _failure(self, message: str, what: str) -> PortError:
        """Failures that `obstore` has no class for, distinguished by its message."""
        first_line = _QUERY.sub("", message.partition("\n")[0])[:300]
        status, code = _STATUS.search(message), _CODE.search(message)
        name = code[1] if code else ""
        if name == "NoSuchBucket":
            return self._wrong(f"there is no bucket {self._bucket!r}")
        if name in _WRONG:
            return self._wrong(f"{what}: the bucket {self._bucket!r} answered {name}")
        if name in _BUSY or (status and status[1] in ("429", "503")):
            return Throttled(f"{what}: {name or first_line}", None, Dependency.BLOB_STORE)
        if status and status[1][0] == "4" and status[1] != "408":
            return PortError(f"{what}: the bucket answered {status[1]} {name}".rstrip())
        return Unavailable(
            f"{what}: the bucket does not answer: {first_line}",
            Dependency.BLOB_STORE,
            misconfigured=_UNRESOLVED in message,
        )

    def _wrong(self, message: str) -> Unavailable:
        return Unavailable(message, Dependency.BLOB_STORE, misconfigured=True)
