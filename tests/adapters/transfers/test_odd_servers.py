"""SFTP servers that leave something out: each is used, and no file is taken for empty."""

import os
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from adapters.ports.errors import Denied
from adapters.ports.places import FileMissing, NameRefused, PartnerAway, PlaceError, UnknownHostKey
from tests.support.transfers.places import MemoryNamings, joined, open_places, write
from tests.support.transfers.sftp_server import PASSWORD, SftpSite, Whole, sftp_site
from workflows.transfers.partners import Rename, WriteMode
from workflows.transfers.settings import Guarantee, Overwrite

FXF_WRITE = 2
"""Of an SFTP open request."""
SECRETS = {"SFTP_PASSWORD": PASSWORD}
CONTENT = bytes(range(256)) * 10_000


def _sized(found: Any, size: int | None) -> asyncssh.SFTPAttrs:
    known = asyncssh.SFTPAttrs.from_local(found) if isinstance(found, os.stat_result) else found
    known.size = size
    return known


class SizeZero(Whole):
    """States 0 bytes for every file, also in lists."""

    size: int | None = 0

    def lstat(self, path: bytes) -> Any:
        return _sized(super().lstat(path), self.size)

    def stat(self, path: bytes) -> Any:
        return _sized(super().stat(path), self.size)


class NoSize(SizeZero):
    """States no size."""

    size = None


class NoStat(Whole):
    """Cannot be asked about one file."""

    def lstat(self, path: bytes) -> Any:
        raise asyncssh.SFTPOpUnsupported("no stat")

    def stat(self, path: bytes) -> Any:
        raise asyncssh.SFTPOpUnsupported("no stat")

    def listdir(self, path: bytes) -> list[asyncssh.SFTPName]:
        """As the library lists, which asks about `.` as well."""
        with os.scandir(self.map_path(path)) as found:
            facts = {each.name: each.stat(follow_symlinks=False) for each in found}
        return [
            asyncssh.SFTPName(name, attrs=asyncssh.SFTPAttrs.from_local(each))
            for name, each in facts.items()
        ]


class NoRealPath(Whole):
    """Does not say where paths lead."""

    def realpath(self, path: bytes) -> bytes:
        raise asyncssh.SFTPOpUnsupported("no realpath")


class Failing(Whole):
    """Says FAILURE of what is missing."""

    def _refusal(self) -> asyncssh.SFTPError:
        return asyncssh.SFTPFailure("failure")

    def lstat(self, path: bytes) -> Any:
        try:
            return super().lstat(path)
        except FileNotFoundError:
            raise self._refusal() from None

    def remove(self, path: bytes) -> None:
        try:
            super().remove(path)
        except FileNotFoundError:
            raise self._refusal() from None


class Refusing(Failing):
    """Says PERMISSION_DENIED of what is missing."""

    def _refusal(self) -> asyncssh.SFTPError:
        return asyncssh.SFTPPermissionDenied("permission denied")


class TakesAtClose(Whole):
    """Takes every file that is written as soon as it is closed."""

    def open(self, path: bytes, pflags: int, attrs: asyncssh.SFTPAttrs) -> object:
        self.written = path if pflags & FXF_WRITE else None
        return super().open(path, pflags, attrs)

    def close(self, file_obj: object) -> None:
        super().close(file_obj)
        if self.written is not None:
            taken = self.folder / os.fsdecode(self.written).lstrip("/")
            taken.rename(self.folder.parent / "taken" / taken.name)
            self.written = None


class ReadsNothing(Whole):
    """Lets no file be read."""

    def read(self, file_obj: object, offset: int, size: int) -> bytes:
        raise asyncssh.SFTPPermissionDenied("no reading")


@pytest.mark.parametrize(
    "character", [SizeZero, NoSize, NoStat, NoRealPath, Failing, Refusing], ids=lambda c: c.__name__
)
@pytest.mark.parametrize("verify", list(Guarantee))
async def test_odd_servers_are_written_to_and_read_from(
    tmp_path: Path, character: type[Whole], verify: Guarantee
) -> None:
    async with (
        sftp_site(tmp_path / "served", character) as site,
        open_places(SECRETS).open(site.partner()) as place,
    ):
        written = await write(place, "in/new/a.bin", CONTENT, verify=verify)
        assert (written.existed, written.picked_up) == (False, False)
        assert (site.folder / "in/new/a.bin").read_bytes() == CONTENT
        assert (await write(place, "in/new/a.bin", CONTENT, verify=verify)).existed
        with pytest.raises(FileMissing):
            await place.stat("in/new/other.bin")
        with pytest.raises(FileMissing):
            await place.stat("elsewhere/other.bin")
        entry = await place.stat("in/new/a.bin")
        assert await joined(place.read(entry)) == CONTENT
        (site.folder / "empty.bin").touch()
        assert await joined(place.read(await place.stat("empty.bin"))) == b""
        assert [each.path for each in await place.list("in/new/*", 5)] == ["in/new/a.bin"]
        assert await place.delete(entry)
        assert not (site.folder / "in/new/a.bin").exists()
        assert not await place.delete(entry)


async def test_without_realpath_a_link_is_refused(tmp_path: Path) -> None:
    async with sftp_site(tmp_path / "served", NoRealPath) as site:
        (site.folder / "out").symlink_to("..")
        async with open_places(SECRETS).open(site.partner()) as place:
            with pytest.raises(NameRefused, match="does not say where it leads"):
                await place.stat("out/file.csv")


async def _tried(site: SftpSite, **fields: Any) -> Any:
    async with open_places(SECRETS).open(site.partner(**fields)) as place:
        return await place.probe()


@pytest.mark.parametrize(
    ("character", "rename", "takes", "failed"),
    [
        (Whole, Rename.ATOMIC_REPLACE, False, []),
        (TakesAtClose, Rename.DIRECT, True, []),
        (ReadsNothing, Rename.ATOMIC_REPLACE, False, ["read"]),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
async def test_a_probe_finds_what_a_transfer_would(
    tmp_path: Path, character: type[Whole], rename: Rename, takes: bool, failed: list[str]
) -> None:
    (tmp_path / "taken").mkdir()
    async with sftp_site(tmp_path / "served", character) as site:
        profile = await _tried(site)
        assert (profile.rename, profile.takes_at_close) == (rename, takes)
        assert [each.split(":")[0] for each in profile.failed] == failed
        assert list(site.folder.iterdir()) == []
        assert len([*(tmp_path / "taken").iterdir()]) == takes


@pytest.mark.parametrize("is_probed", [False, True])
async def test_a_server_that_takes_at_close_gets_files_by_their_names(
    tmp_path: Path, is_probed: bool
) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    async with sftp_site(tmp_path / "served", TakesAtClose) as site:
        known: dict[str, Any] = {"write": WriteMode.DIRECT}
        if is_probed:
            known = {"profile": await _tried(site)}
            for each in taken.iterdir():
                each.unlink()
        async with open_places(SECRETS).open(site.partner(**known)) as place:
            assert (await write(place, "a.csv", b"bytes")).picked_up
        assert [each.name for each in taken.iterdir()] == ["a.csv"]
        assert (taken / "a.csv").read_bytes() == b"bytes"


class DropBox(Whole):
    """Takes uploads, and lets nothing be seen."""

    def lstat(self, path: bytes) -> Any:
        if path.strip(b"/."):
            raise asyncssh.SFTPPermissionDenied("nothing can be seen")
        return super().lstat(path)

    def scandir(self, path: bytes) -> Any:
        raise asyncssh.SFTPPermissionDenied("nothing can be seen")


@pytest.mark.parametrize("mode", [None, *WriteMode])
@pytest.mark.parametrize("overwrite", list(Overwrite))
async def test_a_drop_box_takes_files_that_may_replace_others(
    tmp_path: Path, mode: WriteMode | None, overwrite: Overwrite
) -> None:
    namings = MemoryNamings()
    async with (
        sftp_site(tmp_path / "served", DropBox) as site,
        open_places(SECRETS).open(site.partner(write=mode)) as place,
    ):
        if mode is not WriteMode.DIRECT or overwrite is not Overwrite.REPLACE:
            with pytest.raises(Denied):
                await write(place, "a.csv", b"bytes", overwrite=overwrite)
            return
        for is_there in (True, False):
            found = await write(place, "a.csv", b"bytes", overwrite=overwrite, namings=namings)
            assert found.guarantee == "accepted by the server, which lets nothing be seen there"
            # Once: what the server has accepted is not sent again.
            assert (site.folder / "a.csv").exists() == is_there
            (site.folder / "a.csv").unlink(missing_ok=True)


OLD_SERVERS: dict[str, dict[str, Any]] = {
    "ssh-rsa": {},
    "ssh-dss": {},
    "aes128-cbc": {"encryption_algs": ["aes128-cbc"]},
    "diffie-hellman-group1-sha1": {"kex_algs": ["diffie-hellman-group1-sha1"]},
    "hmac-md5": {"encryption_algs": ["aes128-ctr"], "mac_algs": ["hmac-md5"]},
}


@pytest.mark.filterwarnings("ignore:Diffie-Hellman over finite fields")
@pytest.mark.parametrize("name", OLD_SERVERS)
async def test_an_old_algorithm_is_used_when_the_record_permits_it(
    tmp_path: Path, name: str
) -> None:
    is_key = name.startswith("ssh-")
    key = asyncssh.generate_private_key(name if is_key else "ssh-ed25519")
    if is_key:
        key.sig_algorithms = (name.encode(),)
    async with sftp_site(tmp_path / "served", host_key=key, **OLD_SERVERS[name]) as site:
        unknown: dict[str, Any] = {"host_keys": ()} if is_key else {}
        with pytest.raises(PartnerAway, match="`algorithms` in its record permits old ones"):
            await _tried(site, **unknown)
        if is_key:
            with pytest.raises(UnknownHostKey) as seen:
                await _tried(site, **unknown, algorithms=(name,))
            assert seen.value.shown == key.get_fingerprint()
        await _tried(site, algorithms=(name,))


async def test_bytes_that_grow_at_a_server_without_sizes_are_read_or_refused(
    tmp_path: Path,
) -> None:
    async with (
        sftp_site(tmp_path / "served", SizeZero) as site,
        open_places(SECRETS).open(site.partner()) as place,
    ):
        file = site.folder / "a.bin"
        file.write_bytes(CONTENT)
        entry = await place.stat("a.bin")
        reading = place.read(entry)
        first = await anext(reading)
        os.utime(file, (1, 1))
        with pytest.raises(PlaceError, match="not the file any more"):
            await joined(reading)
        assert CONTENT.startswith(first)
