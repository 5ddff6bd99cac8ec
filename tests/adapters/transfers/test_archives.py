"""Archives: what goes in comes out, and a hostile one is refused for a reason that is said."""

import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest

from adapters.files.archives import ArchiveFiles
from adapters.ports.errors import UnreadableDocument
from adapters.ports.transfers import ArchiveInput, ExtractionLimits
from tests.support.chaos import examples
from tests.support.transfers.archives import (
    FILES,
    extracted,
    gzip_of,
    overlapping_zip,
    tar_of,
    tar_with,
    zip_of,
    zip_with,
)
from tests.support.transfers.openpgp import pieces_of
from workflows.shared.errors import InvalidDocument, RuleViolation
from workflows.transfers.settings import ArchiveFormat

PASSWORD = "correct hörse battery"
REFUSED = (UnreadableDocument, InvalidDocument)


def inputs(files: dict[str, bytes] | None = None) -> list[ArchiveInput]:
    def chunks(content: bytes) -> AsyncIterator[bytes]:
        return pieces_of(content)

    return [
        ArchiveInput(
            name,
            len(content),
            sha256(content).hexdigest(),
            lambda content=content: chunks(content),
            datetime(2026, 11, 22, 14, tzinfo=UTC),
        )
        for name, content in (FILES if files is None else files).items()
    ]


async def made(
    format: ArchiveFormat, files: list[ArchiveInput], password: str | None = None
) -> bytes:
    return b"".join([c async for c in ArchiveFiles().compress(format, files, password)])


@pytest.mark.parametrize("password", [None, PASSWORD])
@pytest.mark.parametrize("format", [ArchiveFormat.ZIP, ArchiveFormat.TAR, ArchiveFormat.TAR_GZ])
async def test_an_archive_holds_its_files_and_is_the_same_again(
    tmp_path: Path, format: ArchiveFormat, password: str | None
) -> None:
    archive = await made(format, inputs(), password)
    assert archive == await made(format, inputs(), password)
    assert await extracted(archive, tmp_path, password=password) == FILES
    assert await extracted(archive, tmp_path, password=password, format=format) == FILES


async def test_archives_are_read_by_other_programs() -> None:
    with zipfile.ZipFile(io.BytesIO(await made(ArchiveFormat.ZIP, inputs()))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == FILES
        assert archive.infolist()[0].date_time == (2026, 11, 22, 14, 0, 0)
    for format in (ArchiveFormat.TAR, ArchiveFormat.TAR_GZ):
        with tarfile.open(fileobj=io.BytesIO(await made(format, inputs()))) as archive:
            assert {m.name: archive.extractfile(m).read() for m in archive} == FILES  # type: ignore[union-attr]
    (first, *_) = inputs()
    assert gzip.decompress(await made(ArchiveFormat.GZIP, [first])) == FILES[first.name]
    with pytest.raises(RuleViolation, match="holds one file"):
        await made(ArchiveFormat.GZIP, inputs())


async def test_files_of_one_name_and_other_content_have_other_salts() -> None:
    one = await made(ArchiveFormat.ZIP, inputs({"a": b"1"}), PASSWORD)
    two = await made(ArchiveFormat.ZIP, inputs({"a": b"2"}), PASSWORD)
    assert one[:40] == two[:40]
    salt = slice(31 + 11, 31 + 11 + 16)
    assert one[salt] != two[salt]


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2], ids=str
)
async def test_zip_archives_of_others_are_read(tmp_path: Path, method: int) -> None:
    assert await extracted(zip_of(FILES, method), tmp_path) == FILES
    assert (
        await extracted(
            b"stub of a program" + zip_of(FILES, method), tmp_path, format=ArchiveFormat.ZIP
        )
        == FILES
    )


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
async def test_tar_archives_of_others_are_read(tmp_path: Path, format: int) -> None:
    long = {f"{'folder/' * 30}{'x' * 120}": b"long", **FILES}
    assert await extracted(tar_of(long, format), tmp_path) == long
    assert await extracted(gzip_of(tar_of(long, format)), tmp_path) == long


async def test_a_gzip_file_is_named_by_its_own_name_and_not_by_that_within(tmp_path: Path) -> None:
    content = gzip_of(b"one", "../../etc/passwd") + gzip_of(b" two") + bytes(512)
    assert await extracted(content, tmp_path, name="out/a.csv.gz") == {"out/a.csv": b"one two"}
    assert await extracted(gzip_of(b"x"), tmp_path, name="a") == {"a": b"x"}
    packed = gzip_of(tar_of({"a": b"x"}))
    whole = await extracted(packed, tmp_path, name="a.tgz", format=ArchiveFormat.GZIP)
    assert list(whole) == ["a.tar"]


async def test_an_archive_in_an_archive_stays_one(tmp_path: Path) -> None:
    inner = zip_of({"a": b"x"})
    assert await extracted(zip_of({"inner.zip": inner}), tmp_path) == {"inner.zip": inner}


async def test_a_traditionally_encrypted_archive_is_read(tmp_path: Path) -> None:
    archive = traditional({"a.csv": b"stop;lat\n" * 50}, b"secret")
    assert await extracted(archive, tmp_path, password="secret") == {"a.csv": b"stop;lat\n" * 50}
    for password in ("wrong", "Secret", "x"):
        with pytest.raises(UnreadableDocument, match="password"):
            await extracted(archive, tmp_path, password=password)


async def test_an_encrypted_archive_needs_its_password(tmp_path: Path) -> None:
    archive = await made(ArchiveFormat.ZIP, inputs(), PASSWORD)
    with pytest.raises(UnreadableDocument, match="encrypted, and no password is set"):
        await extracted(archive, tmp_path)
    with pytest.raises(UnreadableDocument, match="password does not open it") as refused:
        await extracted(archive, tmp_path, password="another hörse")
    assert "another" not in str(refused.value)
    changed = bytearray(archive)
    changed[500] ^= 1
    with pytest.raises(UnreadableDocument):
        await extracted(bytes(changed), tmp_path, password=PASSWORD)


SYMLINK = (0o120777) << 16
DEVICE = (0o060644) << 16


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (zip_of({"../a": b""}), "leads out"),
        (zip_of({"a/../../b": b""}), "leads out"),
        (zip_of({"/etc/passwd": b""}), "absolute"),
        (zip_of({"C:/a": b""}), "absolute"),
        (zip_with("link", b"/etc/passwd", external_attr=SYMLINK), "is a link"),
        (zip_with("dev", b"", external_attr=DEVICE), "is a device"),
        (zip_of({"A.csv": b"1", "a.csv": b"2"}), "elsewhere are one file"),
        (zip_of({}), "holds no files"),
        (zip_of({"folder/": b""}), "holds no files"),
        (overlapping_zip(), "lie upon each other"),
        (zip_of(FILES)[:-30], "damaged or cut off"),
        (zip_of(FILES)[: len(zip_of(FILES)) // 2], "damaged or cut off"),
        (b"PK\x07\x08" + zip_of(FILES), "split into several"),
        (b"PK\x03\x04", "damaged"),
        (zip_of({"a": b"x"}, zipfile.ZIP_LZMA), "method 14"),
        (tar_of({"../a": b""}), "leads out"),
        (tar_of({"/etc/passwd": b""}), "absolute"),
        (tar_with(type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link"),
        (tar_with(type=tarfile.LNKTYPE, linkname="a"), "is a link"),
        (tar_with(type=tarfile.CHRTYPE), "is a device"),
        (tar_with(type=tarfile.FIFOTYPE), "is a device"),
        (tar_of({"a": b"1", "A": b"2"}), "elsewhere are one file"),
        (tar_of({}), "not an archive|holds no files"),
        (tar_of(FILES)[: 512 * 80], "damaged tar archive, or cut off"),
        (tar_of({"a": bytes(512), "b": bytes(512)})[:1024], "damaged tar archive, or cut off"),
        (gzip_of(tar_of(FILES))[:-9], "damaged gzip file, or cut off"),
        (gzip_of(b"x" * 1_000)[:-1], "damaged gzip file"),
        (gzip_of(b"x") + b"tail", "damaged gzip file"),
        (b"\x1f\x8b", "damaged gzip file"),
        (b"", "not an archive"),
        (b"stop;lat;lon\n" * 100, "not an archive"),
        (b"7z\xbc\xaf'\x1c" + bytes(100), "not an archive"),
    ],
)
async def test_a_hostile_or_damaged_archive_is_refused(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    with pytest.raises(REFUSED, match=reason):
        await extracted(content, tmp_path)


async def test_the_same_name_twice_is_refused_although_both_are_well(tmp_path: Path) -> None:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a", b"2")
    with pytest.raises(InvalidDocument, match="twice"):
        await extracted(sink.getvalue(), tmp_path)
    folders = zip_of({"one/a": b"1", "two/a": b"2"})
    with pytest.raises(InvalidDocument, match="twice"):
        await extracted(folders, tmp_path, flatten=True)


BOMB = bytes(100 << 20)


@pytest.mark.parametrize("bomb", ["zip", "gz", "tar.gz"])
async def test_a_bomb_is_refused_by_its_ratio_and_by_its_size(tmp_path: Path, bomb: str) -> None:
    content = {
        "zip": lambda: zip_of({"a": BOMB}),
        "gz": lambda: gzip_of(BOMB),
        "tar.gz": lambda: gzip_of(tar_of({"a": BOMB})),
    }[bomb]()
    with pytest.raises(UnreadableDocument, match="200 times its size"):
        await extracted(content, tmp_path)
    small = ExtractionLimits(files=10, bytes=10 << 20, ratio=2_000)
    with pytest.raises(UnreadableDocument, match="BytesAtMost"):
        await extracted(content, tmp_path, small)
    allowed = ExtractionLimits(files=10, bytes=1 << 30, ratio=2_000)
    assert sum(map(len, (await extracted(content, tmp_path, allowed)).values())) == len(BOMB)


async def test_too_many_files_are_refused(tmp_path: Path) -> None:
    files = {f"{number}": b"" for number in range(11)}
    limits = ExtractionLimits(files=10, bytes=1 << 20, ratio=200)
    for content in (zip_of(files), tar_of(files), gzip_of(tar_of(files))):
        with pytest.raises(UnreadableDocument, match="more than 10 files"):
            await extracted(content, tmp_path, limits)


async def test_a_header_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("pax")
    info.type = tarfile.XHDTYPE
    info.size = 1 << 30
    content = gzip_of(info.tobuf() + bytes(4 << 20))
    with pytest.raises(UnreadableDocument, match="header in it is too long"):
        await extracted(content, tmp_path, format=ArchiveFormat.TAR_GZ)


@pytest.mark.parametrize("made_by", [zip_of, tar_of, lambda files: gzip_of(tar_of(files))])
async def test_archives_one_behind_the_other_are_refused(
    tmp_path: Path, made_by: Callable[[dict[str, bytes]], bytes]
) -> None:
    first, second = made_by({"a.csv": b"1"}), made_by({"b.csv": b"2"})
    with pytest.raises(UnreadableDocument, match="send each of them by itself"):
        await extracted(first + second, tmp_path)
    assert await extracted(second, tmp_path) == {"b.csv": b"2"}


async def test_what_fills_the_last_record_of_a_tar_archive_is_no_archive(tmp_path: Path) -> None:
    whole = tar_of({"a.csv": b"1"})
    for rest in (bytes(1 << 20), b"left in the buffer" * 1_000):
        assert await extracted(whole + rest, tmp_path) == {"a.csv": b"1"}


async def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("sparse")
    info.type = tarfile.GNUTYPE_SPARSE
    content = info.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    with pytest.raises(UnreadableDocument):
        await extracted(content, tmp_path, format=ArchiveFormat.TAR)


async def test_a_stated_size_that_is_not_kept_is_refused(tmp_path: Path) -> None:
    whole = zip_of({"a": b"x" * 5_000})
    for stated in (4_999, 5_001):
        changed = whole.replace(struct.pack("<I", 5_000), struct.pack("<I", stated))
        with pytest.raises(UnreadableDocument):
            await extracted(changed, tmp_path)


@pytest.mark.chaos
@pytest.mark.parametrize("kind", ["zip", "aes", "traditional", "tar", "tar.gz", "gz"])
async def test_a_mutated_archive_is_whole_or_refused(tmp_path: Path, kind: str) -> None:
    files = {"stops.csv": b"stop;lat;lon\n" * 100, "out/b.bin": random.Random(2).randbytes(2_000)}
    first = {"stops.csv": files["stops.csv"]}
    whole, expected = {
        "zip": (zip_of(files), files),
        "aes": (await made(ArchiveFormat.ZIP, inputs(files), "secret"), files),
        "traditional": (traditional(first, b"secret"), first),
        "tar": (tar_of(files), files),
        "tar.gz": (gzip_of(tar_of(files)), files),
        "gz": (gzip_of(files["stops.csv"]), {"archive": files["stops.csv"]}),
    }[kind]
    dice = random.Random(kind)
    limits = ExtractionLimits(files=100, bytes=1 << 20, ratio=200)
    for _ in range(examples(60)):
        content = mutated(whole, dice)
        try:
            found = await extracted(content, tmp_path, limits, password="secret")
        except REFUSED:
            continue
        # What is not covered by a checksum may change: names, times, the content of a plain tar.
        assert sum(map(len, found.values())) <= limits.bytes
        if kind != "tar":
            assert all(value in expected.values() for value in found.values())


def mutated(whole: bytes, dice: random.Random) -> bytes:
    content = bytearray(whole)
    for _ in range(dice.choice((1, 1, 2, 5))):
        place = dice.randrange(len(content))
        match dice.randrange(4):
            case 0:
                content[place] ^= 1 << dice.randrange(8)
            case 1:
                content[place : place + 4] = dice.choice((b"\xff" * 4, bytes(4), b"\0\0\1\0"))
            case 2:
                del content[place : place + dice.randrange(1, 64)]
            case _:
                content[place:place] = content[place : place + dice.randrange(1, 64)]
        if not content:
            return b""
    return bytes(content)


def traditional(files: dict[str, bytes], password: bytes) -> bytes:
    """A ZIP archive with the encryption of old.

    Source: APPNOTE.TXT of PKWARE, 6.1.
    """
    whole = bytearray(zip_of(files))
    (name, content) = next(iter(files.items()))
    start = 30 + len(name)
    packed_size = struct.unpack_from("<I", whole, 18)[0]
    checksum = zlib.crc32(content)
    plain = bytes(11) + bytes([checksum >> 24]) + whole[start : start + packed_size]
    packed = _encrypted(plain, password)
    directory = whole.index(b"PK\x01\x02")
    for place, sizes in ((0, 18), (directory, 20)):
        flags = place + (6 if place == 0 else 8)
        struct.pack_into("<H", whole, flags, 1)
        struct.pack_into("<I", whole, place + sizes, len(packed))
    end = whole.index(b"PK\x05\x06")
    struct.pack_into("<I", whole, end + 16, start + len(packed))
    return bytes(whole[:start]) + packed + bytes(whole[directory:])


def _encrypted(plain: bytes, password: bytes) -> bytes:
    keys = [0x12345678, 0x23456789, 0x34567890]

    def update(byte: int) -> None:
        keys[0] = zlib.crc32(bytes([byte]), keys[0] ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
        keys[1] = ((keys[1] + (keys[0] & 0xFF)) * 134775813 + 1) & 0xFFFFFFFF
        keys[2] = zlib.crc32(bytes([keys[1] >> 24]), keys[2] ^ 0xFFFFFFFF) ^ 0xFFFFFFFF

    for byte in password:
        update(byte)
    out = bytearray()
    for byte in plain:
        mix = (keys[2] | 2) & 0xFFFF
        out.append(byte ^ ((mix * (mix ^ 1)) >> 8 & 0xFF))
        update(byte)
    return bytes(out)
