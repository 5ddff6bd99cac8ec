"""Files whose size is not stated, and files that are still being written."""

import asyncio
import os
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.transfers.sources import SourceSettling
from contracts.errors import TRANSIENT
from contracts.transfers import AfterSource, Partner, PlaceKind, SettleOrder
from tests.support.imports.activities import environment
from tests.support.transfers.actions import NOON, Endpoints, read, reading
from tests.support.transfers.sftp_server import PASSWORD, Sizes, ZeroSizes, sftp_site

CONTENT = b"id;amount\n" * 5_000


@pytest.mark.parametrize("server", [Sizes, ZeroSizes], ids=["no size", "size 0"])
async def test_a_full_file_without_a_stated_size_is_delivered_whole(
    tmp_path: Path, server: type[Sizes]
) -> None:
    async with sftp_site(tmp_path / "served", server) as site:
        (site.folder / "full.csv").write_bytes(CONTENT)
        (site.folder / "empty.csv").write_bytes(b"")
        ends = Endpoints.at(tmp_path, site.partner(), secrets={"SFTP_PASSWORD": PASSWORD})
        action = reading("full.csv", after=AfterSource.DELETE)
        result = await read(ends, action)
        assert await ends.contents(result.files) == {"full.csv": CONTENT}
        with pytest.raises(ApplicationError, match=r"'empty\.csv' is empty; `AllowEmpty`"):
            await read(ends, reading("empty.csv", after=AfterSource.DELETE))
        order = SettleOrder(
            job=ends.order(action, {}).job,
            index=0,
            action=action,
            files=result.files,
            succeeded=True,
        )
        settled = await environment().run(SourceSettling(ends.ports).settle_source, order)
        assert settled.remarks == ()
        assert [path.name for path in site.folder.iterdir()] == ["empty.csv"]


async def test_a_file_that_grows_is_read_again(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(share), settle_seconds=1)
    ends = Endpoints.at(tmp_path, partner)
    (share / "growing.csv").write_bytes(CONTENT)

    async def append() -> None:
        await asyncio.sleep(0.3)
        with (share / "growing.csv").open("ab") as file:
            file.write(CONTENT)

    appending = asyncio.create_task(append())
    with pytest.raises(ApplicationError, match="is still being written") as raised:
        await read(ends, reading("growing.csv"))
    await appending
    assert raised.value.type == TRANSIENT
    result = await read(ends, reading("growing.csv"))
    assert await ends.contents(result.files) == {"growing.csv": 2 * CONTENT}


async def test_an_old_file_is_looked_at_once(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    partner = Partner(
        name="acme", kind=PlaceKind.FOLDER, container=str(share), settle_seconds=3_600
    )
    ends = Endpoints.at(tmp_path, partner)
    (share / "old.csv").write_bytes(CONTENT)
    os.utime(share / "old.csv", (NOON.timestamp() - 7_200,) * 2)
    result = await read(ends, reading("old.csv"))
    assert await ends.contents(result.files) == {"old.csv": CONTENT}
