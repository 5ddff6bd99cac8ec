"""Bytes at rest: AES-256-GCM in chunks of 1 MB, whose order and end are authenticated.

A file is `MAGIC`, 8 bytes that name the key, 32 bytes of salt, and the chunks, each 16 bytes longer
than its plain bytes. Its own key is HKDF-SHA256 of the key with the salt, for the name of the blob:
bytes under another blob's name do not decrypt. The nonce of a chunk is its number (11 bytes) and
whether it is the last one (1 byte).
"""

import base64
import hashlib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from adapters.blocks import computed, in_blocks
from adapters.ports import Denied, UnreadableDocument

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
