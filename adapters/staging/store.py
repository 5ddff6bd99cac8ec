"""Files of transfers in the blob store, encrypted at rest when a key is set."""

import hashlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import date
from typing import Final

from adapters.blocks import computed
from adapters.ports import Blobs, Denied, UnreadableDocument
from adapters.ports.transfers import Secrets
from adapters.staging.cipher import decrypted, encrypted, parsed_key
from contracts.blobs import BlobRef

STAGING: Final = "staging"
KEPT: Final = "kept"
_ENCRYPTED: Final = ".aes"
_PLAIN: Final = ".raw"
_PAGE: Final = 1_000


class StagingKeys:
    """Keys by reference, read when they are first needed.

    Args:
        secrets: Finds them.
        current: Encrypts; None: bytes are stored as they are.
        old: Decrypt what was encrypted before.
    """

    def __init__(self, secrets: Secrets, current: str | None, old: Sequence[str] = ()) -> None:
        self._secrets = secrets
        self._current = current
        self._old = old
        self._read: dict[str, bytes] = {}

    async def current(self) -> bytes | None:
        """The key that encrypts."""
        return None if self._current is None else await self._key(self._current)

    async def all(self) -> Sequence[bytes]:
        """Those that decrypt."""
        references = [each for each in (self._current, *self._old) if each is not None]
        return [await self._key(reference) for reference in references]

    async def _key(self, reference: str) -> bytes:
        if reference not in self._read:
            self._read[reference] = parsed_key(await self._secrets.secret(reference), reference)
        return self._read[reference]


class SealedBlobs:
    """Writes and reads blobs whose references carry size and hash of the plain bytes.

    Args:
        blobs: Where they are.
        keys: Encrypt and decrypt them.
    """

    def __init__(self, blobs: Blobs, keys: StagingKeys) -> None:
        self.blobs = blobs
        self._keys = keys

    async def write(
        self, stem: str, chunks: AsyncIterator[bytes], *, must_encrypt: bool = False
    ) -> BlobRef:
        """Stream bytes into a blob of a name of its own; there is none when `chunks` raises.

        Two attempts of one activity never write the same blob: one that is given up may still be
        writing while the other one is read.

        Args:
            stem: What its name begins with.
            chunks: Pieces of any size.
            must_encrypt: Refuse to store them as they are.

        Raises:
            Denied: There is no key, and bytes must be encrypted.
        """
        key = await self._keys.current()
        name = f"{stem}-{secrets.token_hex(8)}{_PLAIN if key is None else _ENCRYPTED}"
        if key is None:
            if must_encrypt:
                raise Denied("copies are kept encrypted, and no key of the staging area is set")
            # The store hashes what it is given, and this is it.
            return await self.blobs.write(name, chunks)
        plain = _Measured()
        stored = encrypted(chunks, key, name, plain.take)
        # What is encrypted is authenticated by itself: its hash would say nothing more.
        written = await self.blobs.write(name, stored, hashed=False)
        return BlobRef(name=name, size=plain.size, sha256=plain.sha256, etag=written.etag)

    async def read(self, ref: BlobRef) -> AsyncGenerator[bytes]:
        """The plain bytes; others raise before the last of them.

        Raises:
            BlobNotFound: They are gone.
            UnreadableDocument: They are not those that were written.
        """
        stored = self.blobs.read(ref.name)
        try:
            if ref.name.endswith(_ENCRYPTED):
                pieces = _whole(decrypted(stored, await self._keys.all(), ref.name), ref)
            else:
                pieces = _whole(stored, ref, by_hash=True)
            async for piece in pieces:
                yield piece
        finally:
            await stored.aclose()


class BlobStaging:
    """Files of runs between two actions, as `Staging`.

    Args:
        sealed: Where they are.
    """

    def __init__(self, sealed: SealedBlobs) -> None:
        self._sealed = sealed

    async def write(self, run: str, name: str, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Stream bytes in."""
        return await self._sealed.write(f"{stem_of(run)}-{name}", chunks)

    def read(self, ref: BlobRef) -> AsyncGenerator[bytes]:
        """Stream bytes out."""
        return self._sealed.read(ref)

    async def discard(self, ref: BlobRef) -> None:
        """Remove one file."""
        await self._sealed.blobs.delete(ref.name)

    async def remove(self, run: str) -> int:
        """Remove everything of a run."""
        return await self._sealed.blobs.remove(f"{stem_of(run)}-")


class BlobCopies:
    """Copies of what was written, kept for some days, as `KeptCopies`.

    Args:
        sealed: Where they are; always encrypted.
    """

    def __init__(self, sealed: SealedBlobs) -> None:
        self._sealed = sealed

    async def keep(self, run: str, name: str, until: date, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Keep a file up to and with a day."""
        stem = f"{KEPT}/{until.isoformat()}/{_digest(run)}-{name}"
        return await self._sealed.write(stem, chunks, must_encrypt=True)

    def read(self, ref: BlobRef) -> AsyncGenerator[bytes]:
        """Stream bytes out."""
        return self._sealed.read(ref)

    async def remove_before(self, day: date) -> int:
        """Remove what is kept up to earlier days; names begin with the day, which comes first."""
        removed = 0
        while True:
            page = await self._sealed.blobs.list(f"{KEPT}/", _PAGE)
            due = [ref for ref in page if ref.name.split("/")[1] < day.isoformat()]
            for ref in due:
                removed += await self._sealed.blobs.delete(ref.name)
            if len(due) < _PAGE:
                return removed


class _Measured:
    """Number and hash of bytes that pass by."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def take(self, piece: bytes) -> None:
        self.size += len(piece)
        self._digest.update(piece)


async def _whole(
    pieces: AsyncIterator[bytes], ref: BlobRef, *, by_hash: bool = False
) -> AsyncIterator[bytes]:
    """Hold the last piece back until all of them are known to be right."""
    digest = hashlib.sha256()
    size, held = 0, b""
    async for piece in pieces:
        if held:
            yield held
        size += len(piece)
        if by_hash:
            await computed(digest.update, piece)
        held = piece
    if size != ref.size or (by_hash and ref.sha256 not in (None, digest.hexdigest())):
        raise UnreadableDocument(f"the staged bytes of {ref.name} were changed or cut off")
    if held:
        yield held


def stem_of(run: str) -> str:
    """What names of a run's files begin with.

    Runs share 256 folders: a folder of its own would stay behind, empty, in a store on disk.
    """
    digest = _digest(run)
    return f"{STAGING}/{digest[:2]}/{digest}"


def _digest(run: str) -> str:
    return hashlib.sha256(run.encode()).hexdigest()[:32]
