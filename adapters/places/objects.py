"""Object stores: Azure Blob and S3, through `obstore`."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import BaseError

from adapters.places.base import BasePlace, is_strong, no_bytes, probe_name
from adapters.places.credentials import Credentials
from adapters.places.object_deletes import ConditionalDeletes
from adapters.places.object_errors import answered, failure
from adapters.places.pace import Pace
from adapters.places.whole import BLOCK, WholeWrites
from adapters.places.write_order import WriteOrder, checked, checked_pattern, sha256_of, taken
from adapters.ports import Denied, PortError
from adapters.ports.places import (
    Entry,
    FileChanged,
    FileMissing,
    PartnerAway,
    PlaceError,
    Written,
)
from contracts.transfers import Partner, Rename, ServerProfile
from domain.transfers.paths import join, matcher, printable, split

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import AzureStore, S3Store

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

    async def _written(self, chunks: AsyncIterator[bytes], order: WriteOrder) -> Written:
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
