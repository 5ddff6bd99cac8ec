"""SFTP servers that state no sizes, know few questions, or take files at once."""

from pathlib import Path

import asyncssh
import pytest

from adapters.ports import PortError
from adapters.ports.places import FileMissing, NameRefused, UnknownHostKey
from contracts.transfers import Guarantee, Rename, WriteMode
from tests.support.transfers.places import MemoryNamings, joined, open_places, write
from tests.support.transfers.sftp_server import (
    PASSWORD,
    Mailbox,
    Secretive,
    Sizes,
    Unspecific,
    Whole,
    WithoutPosixRename,
    WithoutRealpath,
    WithoutStat,
    ZeroSizes,
    sftp_site,
)

SECRETS = {"SFTP_PASSWORD": PASSWORD}
CONTENT = bytes(range(256)) * 20_000
SERVERS = [
    *(Whole, WithoutPosixRename, Sizes, ZeroSizes, WithoutStat, WithoutRealpath),
    *(Unspecific, Secretive),
]


@pytest.mark.parametrize("server", SERVERS, ids=[each.__name__ for each in SERVERS])
async def test_files_come_and_go_whole(tmp_path: Path, server: type[Whole]) -> None:
    async with sftp_site(tmp_path / "served", server) as site:
        (site.folder / "full.csv").write_bytes(CONTENT)
        (site.folder / "empty.csv").write_bytes(b"")
        async with open_places(SECRETS).open(site.partner()) as place:
            listed = {entry.path: entry for entry in await place.list("*.csv", 10)}
            assert sorted(listed) == ["empty.csv", "full.csv"]
            assert await joined(place.read(listed["full.csv"])) == CONTENT
            assert await joined(place.read(listed["empty.csv"])) == b""
            with pytest.raises(FileMissing):
                await place.stat("missing.csv")
            for name, verify in (("a/b/new.csv", Guarantee.SIZE), ("c.csv", Guarantee.HASH)):
                await write(place, name, CONTENT, verify=verify)
                assert (site.folder / name).read_bytes() == CONTENT
            again = await write(place, "c.csv", CONTENT)
            assert again.existed
            await place.move(await place.stat("c.csv"), "done/c.csv")
            assert await place.delete(await place.stat("full.csv"))
            assert not (site.folder / "full.csv").exists()
        assert not list(site.folder.rglob(".*docflow*"))


@pytest.mark.parametrize("server", SERVERS, ids=[each.__name__ for each in SERVERS])
async def test_a_probe_does_what_a_transfer_does(tmp_path: Path, server: type[Whole]) -> None:
    async with (
        sftp_site(tmp_path / "served", server) as site,
        open_places(SECRETS).open(site.partner()) as place,
    ):
        profile = await place.probe()
        assert [each.name for each in profile.steps] == [
            *("write", "stat", "read", "rename", "delete"),
        ]
        assert [each.failure for each in profile.steps if each.failure] == []
        assert list(site.folder.iterdir()) == []


async def test_a_server_that_takes_files_gets_no_temporary_ones(tmp_path: Path) -> None:
    async with sftp_site(tmp_path / "served", Mailbox) as site:
        Mailbox.taken.clear()
        async with open_places(SECRETS).open(site.partner()) as place:
            profile = await place.probe()
        assert (profile.takes_files, profile.rename) == (True, Rename.DIRECT)
        Mailbox.taken.clear()
        async with open_places(SECRETS).open(site.partner(profile=profile)) as place:
            written = await write(place, "invoice.csv", CONTENT, namings=MemoryNamings())
        assert written.picked_up
        assert Mailbox.taken == {"invoice.csv": CONTENT}


@pytest.mark.parametrize("mode", list(WriteMode))
async def test_a_person_decides_how_files_are_written(tmp_path: Path, mode: WriteMode) -> None:
    async with sftp_site(tmp_path / "served") as site:
        Whole.opened.clear()
        async with open_places(SECRETS).open(site.partner(write=mode)) as place:
            await write(place, "file.csv", CONTENT)
        names = {Path(name.decode()).name for name in Whole.opened}
        assert ("file.csv" in names) is (mode is WriteMode.DIRECT or len(names) > 1)
        assert (site.folder / "file.csv").read_bytes() == CONTENT


async def test_a_link_that_cannot_be_resolved_is_refused(tmp_path: Path) -> None:
    async with sftp_site(tmp_path / "served", WithoutRealpath) as site:
        (site.folder / "out").symlink_to("/")
        async with open_places(SECRETS).open(site.partner()) as place:
            with pytest.raises(NameRefused, match="does not say where it leads"):
                await place.stat("out/etc/hostname")


OLD = {
    "a cipher": ({"encryption_algs": ["aes256-cbc"]}, ("aes256-cbc",)),
    "an exchange": (
        {"kex_algs": ["diffie-hellman-group1-sha1"]},
        ("diffie-hellman-group1-sha1",),
    ),
    "a code": ({"encryption_algs": ["aes256-ctr"], "mac_algs": ["hmac-md5"]}, ("hmac-md5",)),
}


@pytest.mark.filterwarnings("ignore:Diffie-Hellman over finite fields")
@pytest.mark.parametrize("old", OLD, ids=list(OLD))
async def test_old_algorithms_are_permitted_by_name(tmp_path: Path, old: str) -> None:
    server, algorithms = OLD[old]
    async with sftp_site(tmp_path / "served", how=server) as site:
        with pytest.raises(PortError, match="`algorithms` of the partner"):
            async with open_places(SECRETS).open(site.partner()):
                pass
        async with open_places(SECRETS).open(site.partner(algorithms=algorithms)) as place:
            await write(place, "file.csv", b"x")
        with pytest.raises(PortError, match="rot13 in `algorithms` of acme cannot be used"):
            async with open_places(SECRETS).open(site.partner(algorithms=("rot13",))):
                pass


async def test_a_host_key_of_an_old_kind_is_shown_once_it_is_permitted(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-rsa")
    key.sig_algorithms = (b"ssh-rsa",)
    async with sftp_site(tmp_path / "served", host_key=key) as site:
        unknown = site.partner(host_keys=())
        with pytest.raises(PortError, match="`algorithms` of the partner"):
            async with open_places(SECRETS).open(unknown):
                pass
        with pytest.raises(UnknownHostKey) as shown:
            async with open_places(SECRETS).open(
                site.partner(host_keys=(), algorithms=("ssh-rsa",))
            ):
                pass
        assert shown.value.shown == key.get_fingerprint()
        async with open_places(SECRETS).open(site.partner()) as place:
            await write(place, "file.csv", b"x")
