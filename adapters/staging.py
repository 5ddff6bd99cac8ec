"""Files of transfers in the blob store, encrypted at rest when a key is set.

Bytes at rest: AES-256-GCM in chunks of 1 MB, whose order and end are authenticated.

A file is `MAGIC`, 8 bytes that name the key, 32 bytes of salt, and the chunks, each 16 bytes longer
than its plain bytes. Its own key is HKDF-SHA256 of the key with the salt, for the name of the blob:
bytes under another blob's name do not decrypt. The nonce of a chunk is its number (11 bytes) and
whether it is the last one (1 byte).
"""

import base64
import hashlib
import os
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import date
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from adapters.object_blobs import computed, in_blocks
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound, Denied, UnreadableDocument
from adapters.ports.transfers import Secrets
from workflows.shared.contracts import BlobRef

MAGIC: Final = b"docflow-staged-1"
CHUNK: Final = 1 << 20
_KEY_BYTES: Final = 32
_NAME_BYTES: Final = 8
_SALT_BYTES: Final = 32
_TAG_BYTES: Final = 16
HEADER_BYTES: Final = len(MAGIC) + _NAME_BYTES + _SALT_BYTES


def parsed_key(text: str, reference: str) -> bytes:
    """A key of 32 bytes, from base64 or hexadecimal digits.

    Args:
        text: The secret.
        reference: Where it is kept, for the message.

    Raises:
        Denied: It is none; the message does not show it.
    """
    stripped = text.strip()
    for decode in (bytes.fromhex, _from_base64):
        try:
            key = decode(stripped)
        except ValueError:
            continue
        if len(key) == _KEY_BYTES:
            return key
    raise Denied(
        f"{reference} is not a key of the staging area: it takes 32 bytes as base64 or hexadecimal "
        "digits, as `openssl rand -base64 32` makes them"
    )


def _from_base64(text: str, /) -> bytes:
    return base64.b64decode(text, validate=True)


async def encrypted(
    chunks: AsyncIterator[bytes], key: bytes, name: str, seen: Callable[[bytes], None]
) -> AsyncGenerator[bytes]:
    """What is stored for plain bytes.

    Args:
        chunks: Pieces of any size.
        key: 32 bytes.
        name: Of the blob.
        seen: Called with the plain bytes of each chunk, in order, in the thread that encrypts it.
    """
    salt = os.urandom(_SALT_BYTES)
    yield MAGIC + _key_name(key) + salt
    cipher = _cipher(key, salt, name)
    number, held = 0, b""
    async for block in in_blocks(chunks, CHUNK):
        if held:
            yield await _sealed(cipher, _nonce(number, last=False), held, seen)
            number += 1
        held = block
    yield await _sealed(cipher, _nonce(number, last=True), held, seen)


async def decrypted(
    stored: AsyncIterator[bytes], keys: Sequence[bytes], name: str
) -> AsyncGenerator[bytes]:
    """The plain bytes; each chunk is authentic when it is handed out.

    Args:
        stored: Pieces of any size.
        keys: The key, and those that were in use before.
        name: Of the blob.

    Raises:
        UnreadableDocument: Bytes were changed, moved, added or cut off.
        Denied: The key is not among `keys`.
    """
    head, rest = await _header(stored)
    if len(head) < HEADER_BYTES or not head.startswith(MAGIC):
        raise _damaged(name)
    known = {_key_name(key): key for key in keys}
    key = known.get(head[len(MAGIC) : len(MAGIC) + _NAME_BYTES])
    if key is None:
        raise Denied(
            f"{name} is encrypted with a key that is not set any more: add it to the old keys of "
            "the staging area"
        )
    cipher = _cipher(key, head[-_SALT_BYTES:], name)
    number, held = 0, b""
    async for block in in_blocks(rest, CHUNK + _TAG_BYTES):
        if held:
            yield await _opened(cipher, _nonce(number, last=False), held, name)
            number += 1
        held = block
    if plain := await _opened(cipher, _nonce(number, last=True), held, name):
        yield plain


async def _header(stored: AsyncIterator[bytes]) -> tuple[bytes, AsyncIterator[bytes]]:
    head = b""
    async for piece in stored:
        head += piece
        if len(head) >= HEADER_BYTES:
            break
    return head[:HEADER_BYTES], _then(head[HEADER_BYTES:], stored)


async def _then(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in rest:
        yield piece


async def _sealed(
    cipher: AESGCM, nonce: bytes, block: bytes, seen: Callable[[bytes], None]
) -> bytes:
    def seal(plain: bytes) -> bytes:
        seen(plain)
        return cipher.encrypt(nonce, plain, None)

    return await computed(seal, block)


async def _opened(cipher: AESGCM, nonce: bytes, block: bytes, name: str) -> bytes:
    try:
        return await computed(lambda stored: cipher.decrypt(nonce, stored, None), block)
    except (InvalidTag, ValueError) as error:
        raise _damaged(name) from error


def _cipher(key: bytes, salt: bytes, name: str) -> AESGCM:
    info = MAGIC + name.encode()
    return AESGCM(HKDF(SHA256(), _KEY_BYTES, salt=salt, info=info).derive(key))


def _key_name(key: bytes) -> bytes:
    return hashlib.sha256(b"name of " + key).digest()[:_NAME_BYTES]


def _nonce(number: int, *, last: bool) -> bytes:
    return number.to_bytes(11, "big") + bytes([last])


def _damaged(name: str) -> UnreadableDocument:
    return UnreadableDocument(f"the staged bytes of {name} were changed or cut off")


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
    """Bytes of runs between two actions; encrypted at rest when a key is set.

    References carry size and sha256 of the plain bytes.

    Args:
        sealed: Where they are.

    """

    def __init__(self, sealed: SealedBlobs) -> None:
        self._sealed = sealed

    async def write(self, run: str, name: str, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Stream bytes in; there is no file when `chunks` raises. The same name is replaced.

        Args:
            run: Folder of the run: transfer id, and resend.
            name: Unique in the run: index of the action, round, number of the file.
            chunks: Pieces of any size.
        """
        return await self._sealed.write(f"{stem_of(run)}-{name}", chunks)

    def read(self, ref: BlobRef) -> AsyncGenerator[bytes]:
        """Stream bytes out; damaged ones raise before the end.

        Raises:
            BlobNotFound: They are gone.
        """
        return self._sealed.read(ref)

    async def discard(self, ref: BlobRef) -> None:
        """Remove one file, as of an attempt that failed; one that is gone is not an error."""
        await self._sealed.blobs.delete(ref.name)

    async def remove(self, run: str) -> int:
        """Remove everything of a run; how many files there were."""
        return await self._sealed.blobs.remove(f"{stem_of(run)}-")


class BlobCopies:
    """Copies of what was written, kept for some days, as `BlobCopies`.

    Args:
        sealed: Where they are; always encrypted.
    """

    def __init__(self, sealed: SealedBlobs) -> None:
        self._sealed = sealed

    async def keep(self, run: str, name: str, until: date, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Stream a file in, kept up to and with a day.

        Raises:
            Denied: No key is set to encrypt it with.
        """
        stem = f"{KEPT}/{until.isoformat()}/{_digest(run)}-{name}"
        return await self._sealed.write(stem, chunks, must_encrypt=True)

    def read(self, ref: BlobRef) -> AsyncGenerator[bytes]:
        """Stream bytes out.

        Raises:
            BlobNotFound: They are not kept any more.
        """
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


class BlobNotes:
    """Texts in the blob store, as `Notes`.

    Args:
        blobs: Where they are.
    """

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def read(self, run: str, name: str) -> bytes | None:
        """The newest text of a name."""
        try:
            return b"".join([piece async for piece in self._blobs.read(_blob(run, name))])
        except BlobNotFound:
            return None

    async def write(self, run: str, name: str, text: bytes) -> None:
        """Insert or replace a text."""
        await self._blobs.put(_blob(run, name), text)


def _blob(run: str, name: str) -> str:
    return f"{stem_of(run)}-note-{hashlib.sha256(name.encode()).hexdigest()[:32]}"
