"""Bytes at rest: encrypted, whole or refused, and gone when they have to be."""

import base64
import os
import random
from collections.abc import AsyncIterator, Callable
from datetime import date
from pathlib import Path

import pytest

from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound, Denied, UnreadableDocument
from adapters.staging import (
    CHUNK,
    HEADER_BYTES,
    BlobCopies,
    BlobNotes,
    BlobStaging,
    SealedBlobs,
    StagingKeys,
)
from tests.support.blobs import arriving, folder_blobs
from tests.support.memory.blobs import MemoryBlobs
from tests.support.transfers.secrets import PlantedSecrets
from workflows.shared.contracts import BlobRef

KEY, OLD = "env:STAGING_KEY", "env:OLD_STAGING_KEY"
CONTENT = random.Random(5).randbytes(3 * CHUNK + 77)
STORED_CHUNK = CHUNK + 16


@pytest.fixture
def secrets() -> PlantedSecrets:
    planted = PlantedSecrets()
    planted.values[KEY] = base64.b64encode(os.urandom(32)).decode() + "\n"
    planted.values[OLD] = os.urandom(32).hex()
    return planted


@pytest.fixture(params=["memory", "folder"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    return MemoryBlobs() if request.param == "memory" else folder_blobs(tmp_path)


def staging(blobs: Blobs, secrets: PlantedSecrets, key: str | None = KEY) -> BlobStaging:
    return BlobStaging(SealedBlobs(blobs, StagingKeys(secrets, key)))


async def content_of(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


@pytest.mark.parametrize("key", [KEY, None])
@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, len(CONTENT)])
async def test_bytes_come_out_as_they_went_in(
    blobs: Blobs, secrets: PlantedSecrets, key: str | None, size: int
) -> None:
    store = staging(blobs, secrets, key)
    ref = await store.write("run", "0-0-0", arriving(CONTENT[:size], 100_003))
    assert ref.size == size
    assert await content_of(store.read(ref)) == CONTENT[:size]
    stored = await content_of(blobs.read(ref.name))
    assert (CONTENT[:50] in stored) == (key is None and size >= 50)


async def replaced(blobs: Blobs, ref: BlobRef, stored: bytes) -> None:
    await blobs.delete(ref.name)
    await blobs.write(ref.name, arriving(stored, 1 << 20))


@pytest.mark.parametrize(
    "change",
    [
        lambda stored: stored[:-1],
        lambda stored: stored[: HEADER_BYTES + 2 * STORED_CHUNK],
        lambda stored: stored[:HEADER_BYTES],
        lambda stored: stored[:5],
        lambda stored: b"",
        lambda stored: stored + b"x",
        lambda stored: stored[:-40] + bytes([stored[-40] ^ 1]) + stored[-39:],
        lambda stored: b"X" + stored[1:],
        lambda stored: stored[: HEADER_BYTES - 1] + b"\0" + stored[HEADER_BYTES:],
        lambda stored: (
            stored[:HEADER_BYTES]
            + stored[HEADER_BYTES + STORED_CHUNK : HEADER_BYTES + 2 * STORED_CHUNK]
            + stored[HEADER_BYTES : HEADER_BYTES + STORED_CHUNK]
            + stored[HEADER_BYTES + 2 * STORED_CHUNK :]
        ),
        lambda stored: stored[:HEADER_BYTES] + stored[HEADER_BYTES + STORED_CHUNK :],
    ],
    ids=[
        *("last byte", "last chunk", "header alone", "part of the header", "nothing", "longer"),
        *("a bit", "mark", "salt", "order", "a chunk left out"),
    ],
)
async def test_bytes_that_were_changed_never_come_to_their_end(
    secrets: PlantedSecrets, change: Callable[[bytes], bytes]
) -> None:
    blobs = MemoryBlobs()
    store = staging(blobs, secrets)
    ref = await store.write("run", "0-0-0", arriving(CONTENT, 1 << 20))
    await replaced(blobs, ref, change(await content_of(blobs.read(ref.name))))
    seen = b""
    with pytest.raises(UnreadableDocument, match="changed or cut off"):
        async for piece in store.read(ref):
            seen += piece
    assert len(seen) < len(CONTENT)
    assert CONTENT.startswith(seen)


async def test_plain_bytes_that_were_changed_never_come_to_their_end(
    secrets: PlantedSecrets,
) -> None:
    blobs = MemoryBlobs()
    store = staging(blobs, secrets, None)
    ref = await store.write("run", "0-0-0", arriving(CONTENT, 1 << 20))
    for stored in (CONTENT[:-1], CONTENT[:-1] + b"\0", CONTENT + b"\0"):
        await replaced(blobs, ref, stored)
        seen = 0
        with pytest.raises(UnreadableDocument):
            async for piece in store.read(ref):
                seen += len(piece)
        assert seen < len(CONTENT)


async def test_bytes_of_another_file_are_refused(secrets: PlantedSecrets) -> None:
    blobs = MemoryBlobs()
    store = staging(blobs, secrets)
    mine = await store.write("mine", "0-0-0", arriving(CONTENT, 1 << 20))
    other = await store.write("other", "0-0-0", arriving(CONTENT, 1 << 20))
    await replaced(blobs, mine, await content_of(blobs.read(other.name)))
    with pytest.raises(UnreadableDocument):
        await content_of(store.read(mine))


async def test_an_old_key_still_decrypts_and_an_unknown_one_is_named(
    secrets: PlantedSecrets,
) -> None:
    blobs = MemoryBlobs()
    ref = await staging(blobs, secrets, OLD).write("run", "0", arriving(CONTENT, 1 << 20))
    both = BlobStaging(SealedBlobs(blobs, StagingKeys(secrets, KEY, [OLD])))
    assert await content_of(both.read(ref)) == CONTENT
    with pytest.raises(Denied, match="not set any more"):
        await content_of(staging(blobs, secrets).read(ref))


@pytest.mark.parametrize("text", ["", "short", "zz" * 32, "00" * 31, "not base64 !"])
async def test_a_wrong_key_is_refused_without_being_shown(
    secrets: PlantedSecrets, text: str
) -> None:
    secrets.values[KEY] = text
    with pytest.raises(Denied, match=f"{KEY} is not a key") as refused:
        await staging(MemoryBlobs(), secrets).write("run", "0", arriving(CONTENT, 1 << 20))
    assert not text or text not in str(refused.value).replace(KEY, "")


async def test_a_run_is_removed_alone(blobs: Blobs, secrets: PlantedSecrets) -> None:
    store = staging(blobs, secrets)
    runs = [f"transfer-{number}" for number in range(40)]
    refs = {
        run: [await store.write(run, f"0-0-{n}", arriving(b"x", 1)) for n in range(2)]
        for run in runs
    }
    assert await store.remove(runs[7]) == 2
    assert await store.remove(runs[7]) == 0
    for run in runs:
        for ref in refs[run]:
            if run != runs[7]:
                assert await content_of(store.read(ref)) == b"x"
                continue
            with pytest.raises(BlobNotFound):
                await content_of(store.read(ref))
    await store.discard(refs[runs[0]][0])
    await store.discard(refs[runs[0]][0])
    assert await store.remove(runs[0]) == 1


async def test_two_attempts_write_two_files_and_a_broken_one_none(
    blobs: Blobs, secrets: PlantedSecrets
) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield CONTENT
        raise ConnectionError

    store = staging(blobs, secrets)
    with pytest.raises(ConnectionError):
        await store.write("run", "0-0-0", broken())
    assert await store.remove("run") == 0
    first = await store.write("run", "0-0-0", arriving(b"one", 1))
    second = await store.write("run", "0-0-0", arriving(b"two", 1))
    assert await content_of(store.read(first)) == b"one"
    assert await content_of(store.read(second)) == b"two"


async def test_copies_are_kept_encrypted_up_to_their_last_day(
    blobs: Blobs, secrets: PlantedSecrets
) -> None:
    sealed = SealedBlobs(blobs, StagingKeys(secrets, KEY))
    copies = BlobCopies(sealed)
    early = await copies.keep("one", "0", date(2026, 11, 22), arriving(CONTENT, 1 << 20))
    late = await copies.keep("two", "0", date(2027, 1, 3), arriving(CONTENT, 1 << 20))
    assert CONTENT[:50] not in await content_of(blobs.read(early.name))
    assert await copies.remove_before(date(2026, 11, 22)) == 0
    assert await content_of(copies.read(early)) == CONTENT
    assert await copies.remove_before(date(2026, 11, 23)) == 1
    with pytest.raises(BlobNotFound):
        await content_of(copies.read(early))
    assert await content_of(copies.read(late)) == CONTENT
    without = BlobCopies(SealedBlobs(blobs, StagingKeys(secrets, None)))
    with pytest.raises(Denied, match="no key of the staging area is set"):
        await without.keep("one", "0", date(2027, 1, 1), arriving(b"x", 1))


async def test_the_newest_note_of_a_name_is_read_and_goes_with_its_run(
    blobs: Blobs, secrets: PlantedSecrets
) -> None:
    notes = BlobNotes(blobs)
    assert await notes.read("run", "read-1") is None
    for run, text in (("run", b"first"), ("other", b"its own"), ("run", b"second")):
        await notes.write(run, "read-1", text)
    assert await notes.read("run", "read-1") == b"second"
    assert await staging(blobs, secrets).remove("run") == 1
    assert await notes.read("run", "read-1") is None
    assert await notes.read("other", "read-1") == b"its own"
