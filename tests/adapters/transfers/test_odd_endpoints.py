"""Servers and shares that do not behave: what hangs, replaces, refuses, or lists odd names."""

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from adapters.places.base import Timeouts
from adapters.places.folder import FolderThreads
from adapters.places.sftp import SftpPlace
from adapters.ports.errors import Denied
from adapters.ports.places import FileMissing, NameRefused, NameTaken, PartnerAway, PlaceError
from tests.support.transfers.http_files import http_files
from tests.support.transfers.places import MemoryNamings, joined, open_places, write
from tests.support.transfers.sftp_server import (
    PASSWORD,
    Asked,
    RefusingNames,
    Replacing,
    Whole,
    sftp_site,
)
from workflows.transfers.partners import Partner, PlaceKind, Rename, ServerProfile
from workflows.transfers.settings import Overwrite

SECRETS = {"SFTP_PASSWORD": PASSWORD}
ATOMIC = ServerProfile(rename=Rename.ATOMIC_REPLACE)


def share(folder: Path, name: str = "acme") -> Partner:
    folder.mkdir(exist_ok=True)
    return Partner(name=name, kind=PlaceKind.FOLDER, container=str(folder))


async def test_a_share_that_hangs_is_unavailable_and_delays_no_other(tmp_path: Path) -> None:
    threads, answers = FolderThreads(), threading.Event()
    places = open_places(folders=[tmp_path], threads=threads)
    hanging, other = share(tmp_path / "a", "hanging"), share(tmp_path / "b", "other")
    async with places.open(hanging) as place:
        for _ in range(20):
            threads.of("hanging").submit(answers.wait)
        impatient = open_places(folders=[tmp_path], threads=threads)
        object.__setattr__(impatient, "timeouts", Timeouts(answer=0.05))
        try:
            with pytest.raises(PartnerAway, match="does not answer in time"):
                async with impatient.open(hanging):
                    pass
            async with places.open(other) as fine:
                await write(fine, "file.csv", b"x")
        finally:
            answers.set()
        await write(place, "file.csv", b"x")
        assert [each.path for each in await place.list("*", 5)] == ["file.csv"]


async def test_a_folder_that_is_gone_is_unavailable_whatever_is_asked(tmp_path: Path) -> None:
    async with open_places(folders=[tmp_path]).open(share(tmp_path / "a")) as place:
        (tmp_path / "a").rmdir()
        for asked in (place.stat("file.csv"), place.list("in/*", 5), write(place, "b.csv", b"x")):
            with pytest.raises(PartnerAway, match="is not there"):
                await asked


async def test_a_list_asks_an_sftp_server_about_no_single_file(tmp_path: Path) -> None:
    async with sftp_site(tmp_path / "served", Asked) as site:
        for number in range(50):
            (site.folder / f"{number:02}.csv").write_bytes(bytes(number))
        (site.folder / "folder.csv").mkdir()
        Asked.paths.clear()
        async with open_places(SECRETS).open(site.partner()) as place:
            found = await place.list("*.csv", 100)
            assert [path for path in Asked.paths if path.endswith(b".csv")] == []
            assert [each.size for each in found] == list(range(50))
            # What was listed is what is read.
            assert await joined(place.read(found[7])) == bytes(7)


async def test_a_folder_that_is_a_link_out_is_not_listed_as_empty(tmp_path: Path) -> None:
    async with sftp_site(tmp_path / "served") as site:
        (site.folder / "home").mkdir()
        (site.folder / "home" / "up").symlink_to("..")
        async with open_places(SECRETS).open(site.partner(root="home")) as place:
            with pytest.raises(NameRefused, match="leads out"):
                await place.list("up/*", 5)


@pytest.mark.parametrize("kind", ["folder", "sftp"])
async def test_a_link_that_leads_to_no_file_hides_no_other(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "served"
    async with sftp_site(folder) as site:
        (folder / "a.csv").write_bytes(b"a")
        (folder / "folder.csv").mkdir()
        for name, to in (("gone", "gone"), ("round", "round.csv"), ("up", "folder.csv")):
            (folder / f"{name}.csv").symlink_to(to)
        (folder / "good.csv").symlink_to("a.csv")
        partner = site.partner(profile=ATOMIC) if kind == "sftp" else share(folder)
        async with open_places(SECRETS, folders=[tmp_path]).open(partner) as place:
            found = await place.list("*.csv", 10)
            assert [each.path for each in found] == ["a.csv", "good.csv"]
            with pytest.raises(FileMissing):
                await place.stat("gone.csv")


class Slow(Whole):
    """Lists a long folder slowly."""

    async def scandir(self, path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        async for each in super().scandir(path):
            if each.filename.endswith(b"00"):
                waited = asyncio.Event()
                asyncio.get_running_loop().call_later(0.1, waited.set)
                await waited.wait()
            yield each


async def test_a_long_list_is_read_as_long_as_names_come(tmp_path: Path) -> None:
    async with sftp_site(tmp_path, Slow) as site:
        for number in range(2_000):
            (tmp_path / f"{number:04}").touch()
        timeouts = Timeouts(answer=0.2)
        places = replace(open_places(SECRETS), timeouts=timeouts)
        async with places.open(site.partner()) as place:
            began = asyncio.get_running_loop().time()
            assert len(await place.list("*", 9_999)) == 2_000
            # All of it takes longer than one answer may.
            assert asyncio.get_running_loop().time() - began > 5 * timeouts.answer


async def test_a_server_whose_rename_replaces_loses_no_file(tmp_path: Path) -> None:
    async with sftp_site(tmp_path / "served", Replacing) as site:
        (site.folder / "done").mkdir()
        (site.folder / "done" / "file.csv").write_bytes(b"of yesterday")
        (site.folder / "file.csv").write_bytes(b"of today")
        async with open_places(SECRETS).open(site.partner()) as place:
            with pytest.raises(NameTaken):
                await place.move(await place.stat("file.csv"), "done/file.csv")
        assert (site.folder / "done" / "file.csv").read_bytes() == b"of yesterday"
        assert (site.folder / "file.csv").read_bytes() == b"of today"


@pytest.mark.parametrize("overwrite", list(Overwrite))
async def test_a_name_that_is_refused_leaves_no_temporary_file(
    tmp_path: Path, overwrite: Overwrite
) -> None:
    namings = MemoryNamings()
    async with (
        sftp_site(tmp_path / "served", RefusingNames) as site,
        open_places(SECRETS).open(site.partner(profile=ATOMIC)) as place,
    ):
        with pytest.raises(Denied):
            await write(place, "refused.csv", b"x", overwrite=overwrite, namings=namings)
        assert list(site.folder.iterdir()) == []
        # It is not taken for one that the partner has picked up.
        with pytest.raises(Denied):
            await write(place, "refused.csv", b"x", overwrite=overwrite, namings=namings)


@pytest.mark.parametrize("kind", ["folder", "sftp"])
async def test_a_write_that_is_cancelled_leaves_nothing_behind(tmp_path: Path, kind: str) -> None:
    begun = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield bytes(3 << 20)
        begun.set()
        await asyncio.Event().wait()

    folder = tmp_path / "served"
    async with sftp_site(folder) as site:
        partner = site.partner(profile=ATOMIC) if kind == "sftp" else share(folder)
        async with open_places(SECRETS, folders=[tmp_path]).open(partner) as place:
            writing = asyncio.create_task(write(place, "a.bin", bytes(9 << 20), chunks=endless))
            await begun.wait()
            assert [each.suffix for each in folder.iterdir()] == [".part"]
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            assert list(folder.iterdir()) == []


class _Killed(BaseException):
    """The end of a process: nothing is removed after it."""


async def test_a_write_after_one_that_was_killed_at_its_probe_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed(place: SftpPlace, path: str) -> None:
        raise _Killed

    async with sftp_site(tmp_path) as site:
        places = open_places(SECRETS)
        with monkeypatch.context() as killing:
            killing.setattr(SftpPlace, "remove", killed)
            with pytest.raises(_Killed):
                async with places.open(site.partner()) as place:
                    await write(place, "file.csv", b"bytes")
        assert len([*site.folder.glob(".docflow-*")]) > 0
        async with places.open(site.partner()) as place:
            await write(place, "file.csv", b"bytes")
        assert [path.name for path in site.folder.iterdir()] == ["file.csv"]


async def test_a_part_that_begins_elsewhere_is_not_taken_for_the_one_that_was_asked_for() -> None:
    async with http_files() as server:
        content = b"0123456789" * 1_000
        server.files["a.csv"] = content
        partner = Partner(
            name="acme", kind=PlaceKind.HTTPS, host="http://127.0.0.1", port=server.port
        )
        async with open_places({}).open(partner) as place:
            entry = await place.stat("a.csv")
            assert await joined(place.read(entry, 4_000)) == content[4_000:]
            server.part_from = 7
            with pytest.raises(PlaceError, match="another part than it was asked for"):
                await joined(place.read(entry, 4_000))
