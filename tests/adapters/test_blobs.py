"""One conformance suite for every adapter of the `Blobs` port."""

import asyncio
import base64
import hashlib
import hmac
import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from adapters.aws.blobs import Bucket, S3Blobs
from adapters.aws.session import AwsSettings
from adapters.azure.blobs import AzureBlobs
from adapters.azure.storage_account import StorageAccount
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound, PortError, Throttled, Unavailable
from stack.azurite import azurite
from stack.children import free_port
from tests.support.aws import moto
from tests.support.blobs import SMALL, arriving, folder_blobs, make_file
from tests.support.memory.blobs import MemoryBlobs
from workers.shared.services.requirements import State, container_of
from workers.shared.settings.common import BlobSettings
from workflows.shared.dependencies import Dependency

WRONG = (Dependency.BLOB_STORE, True)
"""Dependency of a failure, and that a setting is wrong."""
LARGE = random.Random(7).randbytes((11 << 20) + 321)  # three blocks, the last one short


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Connection string of an emulator that lasts for this module."""
    with asyncio.Runner() as runner:
        running = azurite(tmp_path_factory.mktemp("azurite"))
        yield runner.run(running.__aenter__())
        runner.run(running.__aexit__(None, None, None))


def with_signature(connection_string: str) -> str:
    """The same account by a shared access signature that allows everything for a day.

    Source: "Create an account SAS" of the Azure Storage REST reference.
    """
    account = StorageAccount.from_connection_string(connection_string)
    expiry = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    values = {"sp": "rwdlac", "ss": "b", "srt": "sco", "se": expiry, "sv": "2020-10-02"}
    to_sign = [account.name, values["sp"], values["ss"], values["srt"], "", expiry, "", ""]
    text = "\n".join([*to_sign, values["sv"], ""]).encode()
    digest = hmac.digest(base64.b64decode(account.key or ""), text, "sha256")
    signature = urlencode({**values, "sig": base64.b64encode(digest).decode()})
    return (
        f"BlobEndpoint={account.endpoint};AccountName={account.name};"
        f"SharedAccessSignature={signature}"
    )


@pytest.fixture(scope="module")
def account() -> Iterator[AwsSettings]:
    """moto, with the bucket `documents`."""
    with moto() as settings:
        httpx.put(f"{settings.endpoint_url}/documents").raise_for_status()
        yield settings


def bucket_of(account: AwsSettings, name: str = "documents") -> Bucket:
    return Bucket(name, account.region, account.endpoint_url, "key", "planted-secret")


@pytest.fixture(params=["memory", "folder", "s3", "azure", "azure-signature"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "s3":
        return S3Blobs(bucket_of(request.getfixturevalue("account")), os.urandom(6).hex())
    if request.param == "memory":
        return MemoryBlobs()
    if request.param == "folder":
        return folder_blobs(tmp_path)
    storage = request.getfixturevalue("storage")
    if request.param == "azure-signature":
        storage = with_signature(storage)
    container = AzureBlobs(storage, f"test-{os.urandom(6).hex()}")
    asyncio.run(container.create_container())
    return container


async def test_a_blob_is_read_in_bounded_pieces(blobs: Blobs, tmp_path: Path) -> None:
    await blobs.upload(make_file(tmp_path, LARGE), "large.bin")
    pieces = [piece async for piece in blobs.read("large.bin")]
    assert b"".join(pieces) == LARGE
    assert max(map(len, pieces)) < len(LARGE) / 2
    for start, length in ((0, 1), (len(LARGE) // 2, 1_500_000), (5, None), (len(LARGE) - 9, 99)):
        part = [piece async for piece in blobs.read("large.bin", start=start, length=length)]
        assert b"".join(part) == LARGE[start : None if length is None else start + length]
    await blobs.upload(make_file(tmp_path, b""), "empty.bin")
    assert not [piece async for piece in blobs.read("empty.bin")]
    with pytest.raises(BlobNotFound):
        await anext(blobs.read("missing.bin"))


async def test_reading_with_an_etag_refuses_a_newer_blob(blobs: Blobs, tmp_path: Path) -> None:
    old = await blobs.upload(make_file(tmp_path, b"old"), "a")
    assert old.etag == (await blobs.stat("a")).etag
    assert [piece async for piece in blobs.read("a", etag=old.etag)] == [b"old"]
    await blobs.upload(make_file(tmp_path, b"new"), "a")
    with pytest.raises(PortError, match="replaced"):
        await anext(blobs.read("a", etag=old.etag))
    assert [piece async for piece in blobs.read("a")] == [b"new"]


async def test_a_folder_lists_its_blobs_by_name(blobs: Blobs, tmp_path: Path) -> None:
    source = make_file(tmp_path, SMALL)
    for name in ("scenes/b.tif", "scenes/a/1.tif", "scenes.txt", "scenes2/c.tif"):
        await blobs.upload(source, name)
    found = await blobs.list("scenes/", 10)
    assert [each.name for each in found] == ["scenes/a/1.tif", "scenes/b.tif"]
    assert found[1] == (await blobs.stat("scenes/b.tif")).model_copy(update={"sha256": None})
    assert [each.name for each in await blobs.list("scenes/", 1)] == ["scenes/a/1.tif"]
    assert not await blobs.list("nothing/", 10)


async def test_a_target_that_cannot_be_written_is_no_fault_of_the_store(
    blobs: Blobs, tmp_path: Path
) -> None:
    await blobs.upload(make_file(tmp_path, SMALL), "a.csv")
    with pytest.raises(FileNotFoundError):
        await blobs.download("a.csv", tmp_path / "none" / "target")


@pytest.mark.parametrize("content", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
@pytest.mark.parametrize("overwrite", [True, False])
async def test_an_upload_is_downloaded_unchanged(
    blobs: Blobs, tmp_path: Path, content: bytes, overwrite: bool
) -> None:
    reported: list[int] = []
    name = "project 1/sub folder/ü+%20&#.csv"
    up = await blobs.upload(make_file(tmp_path, content), name, overwrite=overwrite)
    down = await blobs.download(name, tmp_path / "target", reported.append)

    assert (tmp_path / "target").read_bytes() == content
    assert up == down
    assert (up.name, up.size) == (name, len(content))
    assert up.sha256 == hashlib.sha256(content).hexdigest()
    assert reported == sorted(reported)
    assert (reported or [0])[-1] == len(content)
    assert (
        max(b - a for a, b in zip([0, *reported], [*reported, len(content)], strict=True))
        <= 12 << 20
    )

    found = await blobs.stat(name)
    assert (found.size, found.etag, found.sha256) == (up.size, up.etag, None)


async def test_a_missing_blob_is_distinguished_from_other_failures(
    blobs: Blobs, tmp_path: Path
) -> None:
    with pytest.raises(BlobNotFound, match="'no/such'"):
        await blobs.stat("no/such")
    with pytest.raises(BlobNotFound, match="'no/such'"):
        await blobs.download("no/such", tmp_path / "target")
    with pytest.raises(BlobNotFound, match="'no/such'"):
        await blobs.copy("no/such", "other")
    assert await blobs.delete("no/such") is False
    assert await blobs.delete("no/such", etag='"0x1"') is False


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
async def test_overwriting_is_asked_for(blobs: Blobs, tmp_path: Path, content: bytes) -> None:
    source = make_file(tmp_path, content)
    first = await blobs.upload(source, "a")
    with pytest.raises(FileExistsError, match="'a'"):
        await blobs.upload(source, "a", overwrite=False)
    assert (await blobs.stat("a")).etag == first.etag
    second = await blobs.upload(make_file(tmp_path, content + b"more"), "a")
    assert second.etag != first.etag
    assert (await blobs.stat("a")).size == len(content) + 4


async def test_a_copy_replaces_its_target(blobs: Blobs, tmp_path: Path) -> None:
    await blobs.upload(make_file(tmp_path, LARGE), "temp/ä b.xer")
    await blobs.upload(make_file(tmp_path, SMALL), "final/x.xer")
    copied = await blobs.copy("temp/ä b.xer", "final/x.xer")
    down = await blobs.download("final/x.xer", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == LARGE
    assert (copied.name, copied.size, copied.etag) == ("final/x.xer", down.size, down.etag)
    assert (await blobs.stat("temp/ä b.xer")).size == len(LARGE)


async def test_a_short_blob_is_put_and_put_again(blobs: Blobs, tmp_path: Path) -> None:
    first = await blobs.put("notes/a", SMALL)
    second = await blobs.put("notes/a", b"")
    assert second.etag != first.etag
    assert second == await blobs.download("notes/a", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b""


async def test_blobs_are_removed_by_the_beginning_of_their_names(blobs: Blobs) -> None:
    for name in ("runs/00/a-1", "runs/00/a-2", "runs/00/ab-1", "runs/01/a-1"):
        await blobs.put(name, SMALL)
    assert await blobs.remove("runs/00/a-") == 2
    assert await blobs.remove("runs/00/a-") == 0
    assert await blobs.remove("runs/none/a-") == 0
    left = await blobs.list("runs/", 10)
    assert [each.name for each in left] == ["runs/00/ab-1", "runs/01/a-1"]


async def test_delete_with_an_etag_spares_a_newer_blob(blobs: Blobs, tmp_path: Path) -> None:
    old = await blobs.upload(make_file(tmp_path, SMALL), "a")
    new = await blobs.upload(make_file(tmp_path, SMALL + b"x"), "a")
    assert await blobs.delete("a", etag=old.etag) is False
    assert (await blobs.stat("a")).etag == new.etag
    assert await blobs.delete("a", etag=new.etag) is True
    with pytest.raises(BlobNotFound):
        await blobs.stat("a")
    await blobs.upload(make_file(tmp_path, SMALL), "a")
    assert await blobs.delete("a") is True
    assert await blobs.delete("a") is False


async def test_of_concurrent_creations_one_wins(blobs: Blobs, tmp_path: Path) -> None:
    source = make_file(tmp_path, SMALL)
    outcomes = await asyncio.gather(
        *(blobs.upload(source, "contested", overwrite=False) for _ in range(5)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, FileExistsError) for outcome in outcomes) == 4


@pytest.mark.parametrize("content", [b"", SMALL, LARGE], ids=["empty", "small", "large"])
@pytest.mark.parametrize("piece", [65_536, 5 << 20], ids=["small pieces", "large pieces"])
async def test_a_blob_uploaded_in_pieces_is_downloaded_whole(
    blobs: Blobs, tmp_path: Path, content: bytes, piece: int
) -> None:
    name = "spreadsheets/1/ü+%20&#"
    written = await blobs.write(name, arriving(content, piece))
    down = await blobs.download(name, tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == content
    assert written == down


async def test_pieces_of_one_byte(blobs: Blobs, tmp_path: Path) -> None:
    await blobs.write("a", arriving(SMALL, 1))
    await blobs.download("a", tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == SMALL


@pytest.mark.parametrize("arrived", [SMALL, LARGE], ids=["small", "large"])
async def test_what_stops_arriving_is_no_blob(blobs: Blobs, arrived: bytes) -> None:
    async def breaks_off() -> AsyncIterator[bytes]:
        async for piece in arriving(arrived, 1 << 20):
            yield piece
        raise EOFError("the sender went away")

    with pytest.raises(EOFError, match="the sender went away"):
        await blobs.write("a", breaks_off())
    with pytest.raises(BlobNotFound):
        await blobs.stat("a")
    again = await blobs.write("a", arriving(arrived, 1 << 20))
    assert (await blobs.stat("a")).etag == again.etag


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])
async def test_writing_never_replaces(blobs: Blobs, content: bytes) -> None:
    first = await blobs.write("a", arriving(SMALL, 7))
    with pytest.raises(FileExistsError, match="'a'"):
        await blobs.write("a", arriving(content, 1 << 20))
    assert (await blobs.stat("a")).etag == first.etag


async def test_of_concurrent_writers_one_wins(blobs: Blobs) -> None:
    # moto does not decide between two that complete an object in parts at the same moment.
    content = SMALL if isinstance(blobs, S3Blobs) else LARGE
    outcomes = await asyncio.gather(
        *(blobs.write("contested", arriving(content, 1 << 20)) for _ in range(3)),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, FileExistsError) for outcome in outcomes) == 2
    assert (await blobs.stat("contested")).size == len(content)


async def test_a_store_that_can_be_used_passes_its_probe(blobs: Blobs) -> None:
    await blobs.probe()


class TestS3:
    async def test_a_missing_bucket_is_a_wrong_setting(
        self, account: AwsSettings, tmp_path: Path
    ) -> None:
        blobs = S3Blobs(bucket_of(account, "nowhere"), "imports")
        for call in (
            blobs.probe,
            lambda: blobs.stat("a"),
            lambda: blobs.download("a", tmp_path / "target"),
            lambda: blobs.upload(make_file(tmp_path, SMALL), "a"),
            lambda: blobs.delete("a"),
        ):
            with pytest.raises(Unavailable, match="there is no bucket") as refused:
                await call()
            assert (refused.value.dependency, refused.value.misconfigured) == WRONG

    @pytest.mark.parametrize(
        ("status", "body", "expected", "misconfigured"),
        [
            ("403 Forbidden", "<Error><Code>InvalidAccessKeyId</Code></Error>", Unavailable, True),
            ("503 Slow", "<Error><Code>SlowDown</Code></Error>", Throttled, False),
            ("500 Oops", "", Unavailable, False),
            ("400 Bad", "<Error><Code>InvalidRequest</Code></Error>", PortError, None),
        ],
    )
    async def test_answers_become_errors_of_the_port(
        self, status: str, body: str, expected: type[PortError], misconfigured: bool | None
    ) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with suppress(asyncio.IncompleteReadError):
                await reader.readuntil(b"\r\n\r\n")
                head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n"
                writer.write(f"{head}Connection: close\r\n\r\n{body}".encode())
                await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            bucket = Bucket("b", "eu-central-1", f"http://127.0.0.1:{port}", "key", "planted")
            with pytest.raises(expected) as raised:
                await S3Blobs(bucket, "imports").list("a/", 1)
        assert type(raised.value) is expected
        assert "planted" not in str(raised.value)
        if isinstance(raised.value, Unavailable):
            assert raised.value.dependency is Dependency.BLOB_STORE
            assert raised.value.misconfigured is misconfigured

    async def test_setup_says_what_is_wrong_with_a_bucket(self, account: AwsSettings) -> None:
        given = {
            "DOCFLOW_BLOB_ENDPOINT_URL": account.endpoint_url or "",
            "DOCFLOW_BLOB_ACCESS_KEY_ID": "key",
            "DOCFLOW_BLOB_SECRET_ACCESS_KEY": "planted",
        }
        for name, state in (("nowhere", State.MISSING), ("documents", State.OK)):
            settings = BlobSettings.read({**given, "DOCFLOW_BLOB_BUCKET": name})
            found = (await container_of(settings).found()).finding
            assert found.state is state
        assert found.says == "documents/imports"

    async def test_a_server_that_does_not_listen_is_unavailable(self) -> None:
        bucket = Bucket("b", "eu-central-1", f"http://127.0.0.1:{free_port()}", "key", "planted")
        with pytest.raises(Unavailable) as down:
            await S3Blobs(bucket, "imports").probe()
        assert (down.value.dependency, down.value.misconfigured) == (Dependency.BLOB_STORE, False)


class TestAzure:
    async def test_a_missing_container_is_named(self, storage: str, tmp_path: Path) -> None:
        blobs = AzureBlobs(storage, "nowhere")
        with pytest.raises(Unavailable, match=r"container|ContainerNotFound") as refused:
            await blobs.upload(make_file(tmp_path, SMALL), "a")
        assert (refused.value.dependency, refused.value.misconfigured) == WRONG
        await blobs.create_container()
        await blobs.create_container()
        await blobs.upload(make_file(tmp_path, SMALL), "a")

    async def test_a_wrong_key_is_a_wrong_setting(self, storage: str, tmp_path: Path) -> None:
        account = StorageAccount.from_connection_string(storage)
        wrong = f"AccountName={account.name};AccountKey=a2V5;BlobEndpoint={account.endpoint}"
        blobs = AzureBlobs(wrong, "container")
        with pytest.raises(Unavailable) as refused:
            await blobs.upload(make_file(tmp_path, SMALL), "a")
        assert (refused.value.dependency, refused.value.misconfigured) == WRONG
        with pytest.raises(Unavailable) as refused:
            await blobs.delete("a")
        assert (refused.value.dependency, refused.value.misconfigured) == WRONG
        with pytest.raises(Unavailable) as refused:
            await blobs.probe()
        assert (refused.value.dependency, refused.value.misconfigured) == WRONG
