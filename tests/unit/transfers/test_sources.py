"""What becomes of sources when a run has ended: deleted, moved, or left where they changed."""

from pathlib import Path

import pytest

from activities.transfers.read_file import SourceSettling
from tests.support.imports.activities import environment
from tests.support.transfers.actions import Endpoints, old, read, reading
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.runs import Manifest, SettleInput
from workflows.transfers.settings import AfterSource, ReadFile


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


@pytest.fixture
def ends(tmp_path: Path, share: Path) -> Endpoints:
    return Endpoints.at(tmp_path, Partner(name="acme", kind=PlaceKind.FOLDER, container=str(share)))


async def settle(
    ends: Endpoints,
    action: ReadFile,
    names: dict[str, str],
    files: Manifest,
    succeeded: bool = True,
) -> tuple[str, ...]:
    order = SettleInput(
        job=ends.order(action, names).job,
        index=0,
        action=action,
        names=names,
        files=files,
        succeeded=succeeded,
    )
    result = await environment().run(SourceSettling(ends.ports).settle_source, order)
    return result.remarks


async def test_sources_are_deleted_and_moved_at_the_end(ends: Endpoints, share: Path) -> None:
    old(share / "in" / "a.csv", b"one")
    old(share / "done" / "a.csv", b"of yesterday")
    move = reading("in/a.csv", after=AfterSource.MOVE, move_to="done/{name}")
    files = (await read(ends, move)).files
    for _ in range(2):
        remarks = await settle(ends, move, {"move_to": "done/{name}"}, files)
        assert remarks == ("the source 'in/a.csv' was moved to 'done/a-2.csv': its name was taken",)
        assert (share / "done" / "a-2.csv").read_bytes() == b"one"
        assert list((share / "in").iterdir()) == []
    old(share / "in" / "b.csv", b"two")
    delete = reading("in/b.csv", after=AfterSource.DELETE)
    files = (await read(ends, delete)).files
    for _ in range(2):
        assert await settle(ends, delete, {}, files) == ()
        assert list((share / "in").iterdir()) == []


async def test_a_source_of_a_failed_run_is_moved_where_the_settings_say(
    ends: Endpoints, share: Path
) -> None:
    old(share / "in" / "a.csv", b"one")
    action = reading("in/a.csv", after=AfterSource.DELETE, on_failure_move_to="failed/{name}")
    files = (await read(ends, action)).files
    names = {"on_failure_move_to": "failed/{name}"}
    assert await settle(ends, action, names, files, succeeded=False) == ()
    assert (share / "failed" / "a.csv").read_bytes() == b"one"


@pytest.mark.parametrize("after", [AfterSource.MOVE, AfterSource.DELETE])
async def test_a_source_that_has_changed_since_stays_with_a_remark(
    ends: Endpoints, share: Path, after: AfterSource
) -> None:
    old(share / "in" / "a.csv", b"one")
    action = reading("in/a.csv", after=after, move_to="done/{name}")
    files = (await read(ends, action)).files
    old(share / "in" / "a.csv", b"a new one", age=60)
    remarks = await settle(ends, action, {"move_to": "done/{name}"}, files)
    assert len(remarks) == 1 and "another file than the one that was read" in remarks[0]
    assert (share / "in" / "a.csv").read_bytes() == b"a new one"


async def test_another_file_of_the_same_size_is_not_taken_for_the_moved_source(
    ends: Endpoints, share: Path
) -> None:
    old(share / "in" / "a.csv", b"one")
    old(share / "done" / "a.csv", b"two")
    action = reading("in/a.csv", after=AfterSource.MOVE, move_to="done/{name}")
    files = (await read(ends, action)).files
    (share / "in" / "a.csv").unlink()
    [remark] = await settle(ends, action, {"move_to": "done/{name}"}, files)
    assert remark == (
        "the source 'in/a.csv' is no longer there, and no file with its content has the name that "
        "it was to get: another program may have moved or deleted it"
    )
    assert (share / "done" / "a.csv").read_bytes() == b"two"
