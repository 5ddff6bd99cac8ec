"""Actions at endpoints: what is read, written, called, and becomes of sources."""

import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.shared.failures import LOST_WORKERS
from activities.transfers.endpoints import partner_probe
from activities.transfers.read_file import FileReading, SourceSettling
from activities.transfers.write_file import FileWriting, HttpCalling
from adapters.places.folder import FolderPlace
from adapters.ports.places import Entry, PartnerAway
from tests.support.imports.activities import environment
from tests.support.transfers.actions import NOON, TRANSFER, Endpoints, old, read, reading
from tests.support.transfers.events import a_job_order, an_event
from workflows.shared.errors import NOT_YET, PERMANENT, TRANSIENT, UNAVAILABLE, WORKERS_LOST
from workflows.transfers.partners import Partner, PlaceKind, Rename
from workflows.transfers.receipts import ReceiptStep, verify
from workflows.transfers.runs import ActionResult, Manifest, SettleInput
from workflows.transfers.settings import (
    AfterSource,
    CallHttp,
    Overwrite,
    ReadFile,
    TemplateContext,
    WriteFile,
    resolved_templates,
)


@pytest.fixture
def share(tmp_path: Path) -> Path:
    folder = tmp_path / "share"
    folder.mkdir()
    return folder


@pytest.fixture
def ends(tmp_path: Path, share: Path) -> Endpoints:
    return Endpoints.at(tmp_path, Partner(name="acme", kind=PlaceKind.FOLDER, container=str(share)))


async def refused(ends: Endpoints, action: ReadFile) -> ApplicationError:
    with pytest.raises(ApplicationError) as raised:
        await read(ends, action)
    return raised.value


async def test_files_of_a_pattern_are_staged_with_what_is_known_of_them(
    ends: Endpoints, share: Path
) -> None:
    old(share / "in" / "a.csv", b"first")
    old(share / "in" / "b.csv", b"second")
    result = await read(ends, reading("in/*.csv", at_most=5))
    assert await ends.contents(result.files) == {"a.csv": b"first", "b.csv": b"second"}
    assert (result.files.files, result.files.bytes) == (2, 11)
    assert result.step is not None
    text = b"".join([each async for each in ends.ports.staging.read(result.step)])
    step = ReceiptStep.model_validate_json(text)
    assert [line.place for line in step.files] == ["folder:acme/in/a.csv", "folder:acme/in/b.csv"]
    assert verify(
        {
            "transfer_id": TRANSFER,
            "event": "e" * 64,
            "steps": [json.loads(text)],
            "sha256": result.step_sha256,
        }
    ).whole


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (reading("in/*.xml"), "names 0 files"),
        (reading("in/none.csv"), "names 0 files"),
        (reading("in/*.csv", at_most=1), "more than 1 files"),
        (reading("in/empty.csv"), "is empty"),
        (reading("../out.csv"), "would leave its folder"),
        (reading("none/*.csv"), "there is no folder 'none' at acme"),
        (reading("odd/*.csv", at_most=9), "'odd/a\\tb.csv' holds a control character; nothing"),
    ],
)
async def test_files_that_are_not_as_expected_are_refused_and_nothing_is_read(
    ends: Endpoints, share: Path, action: ReadFile, said: str
) -> None:
    for name, content in (("a.csv", b"x"), ("b.csv", b"y"), ("empty.csv", b"")):
        old(share / "in" / name, content)
    old(share / "odd" / "a.csv", b"z")
    old(share / "odd" / "a\tb.csv", b"z")
    assert said in str(await refused(ends, action))


async def test_no_file_and_empty_files_are_remarks_where_they_are_allowed(
    ends: Endpoints, share: Path
) -> None:
    nowhere = await read(ends, reading("in/*.csv", at_least=0))
    assert nowhere.remarks[0] == "there is no folder 'in' at acme"
    (share / "in").mkdir()
    none = await read(ends, reading("in/*.csv", at_least=0))
    assert none.files.files == 0 and "no file" in none.remarks[0]
    old(share / "in" / "a.csv", b"")
    empty = await read(ends, reading("in/*.csv", allow_empty=True))
    assert empty.files.files == 1 and "1 of 1 files are empty" in empty.remarks[0]


async def test_files_that_a_pattern_leaves_out_are_named(ends: Endpoints, share: Path) -> None:
    for name in ("a.csv", "B.CSV", "C.Csv", "d.csv.filepart", "e.xml"):
        old(share / "in" / name, b"1")
    cased = await read(ends, reading("in/*.csv"))
    assert list(await ends.contents(cased.files)) == ["a.csv"]
    assert cased.remarks == (
        "'in/B.CSV' and 1 others: left out, differs from 'in/*.csv' in upper and lower case alone",
    )
    every = await read(ends, reading("in/*", at_most=4))
    assert list(await ends.contents(every.files)) == ["B.CSV", "C.Csv", "a.csv", "e.xml"]
    assert every.remarks == (
        "'in/d.csv.filepart': left out, as a file that its sender still writes",
    )
    named = await read(ends, reading("in/*.filepart"))
    assert (named.files.files, named.remarks) == (1, ())
    none = await refused(ends, reading("in/b*.csv"))
    assert "names 0 files" in str(none) and "'in/B.CSV': left out, differs from" in str(none)
    none = await refused(ends, reading("in/A.csv"))
    assert "'in/a.csv': left out, differs from 'in/A.csv' in upper and lower case" in str(none)
    old(share / "in" / "Mu\u0308ller.csv", b"1")
    none = await refused(ends, reading("in/Müller.csv"))
    assert "'in/Mu\\u0308ller.csv': left out, differs from 'in/M\\xfcller.csv' in how" in str(none)


async def test_a_name_that_looks_like_a_pattern_is_a_name_first(
    ends: Endpoints, share: Path
) -> None:
    old(share / "report[1].csv", b"mine")
    old(share / "report1.csv", b"other")
    result = await read(ends, reading("report[1].csv"))
    assert await ends.contents(result.files) == {"report[1].csv": b"mine"}


async def test_a_name_of_the_event_is_no_pattern(ends: Endpoints, share: Path) -> None:
    odd = "odd [1]*{x}.csv"
    old(share / "in" / odd, b"mine")
    event = a_job_order(an_event(data={"path": f"in/{odd}"})).event
    action = reading("{data.path}", after=AfterSource.MOVE, move_to="done/{data.path}")
    names = resolved_templates(action, TemplateContext(event, "UTC"))
    result = await environment().run(FileReading(ends.ports).read_file, ends.order(action, names))
    assert await ends.contents(result.files) == {odd: b"mine"}
    order = ends.order(action, names)
    settle = SettleInput(
        job=order.job, index=0, action=action, names=names, files=result.files, succeeded=True
    )
    settled = await environment().run(SourceSettling(ends.ports).settle_source, settle)
    assert settled.remarks == () and (share / "done" / "in" / odd).is_file()


async def test_a_file_that_is_still_written_is_waited_for(ends: Endpoints, share: Path) -> None:
    old(share / "a.csv", b"half", age=10)
    error = await refused(ends, reading("a.csv", stable_seconds=60))
    assert error.type == NOT_YET
    assert error.next_retry_delay is not None and error.next_retry_delay.total_seconds() == 50
    old(share / "a.csv", b"whole", age=60)
    assert (await read(ends, reading("a.csv", stable_seconds=60))).files.files == 1


async def test_a_clock_that_is_wrong_does_not_hold_a_file_up_for_ever(
    ends: Endpoints, share: Path
) -> None:
    old(share / "a.csv", b"x", age=-7_200)
    assert (await refused(ends, reading("a.csv", stable_seconds=60))).type == NOT_YET
    later = replace(ends, now=NOON.replace(minute=1))
    assert (await read(later, reading("a.csv", stable_seconds=60))).files.files == 1


class Breaking:
    """Breaks every read of a folder after some bytes, until it is healed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
        self.offsets: list[int] = []
        self.after: int | None = after
        whole = FolderPlace.read

        async def read(place: FolderPlace, entry: Entry, offset: int = 0) -> AsyncIterator[bytes]:
            self.offsets.append(offset)
            size = 0
            async for chunk in whole(place, entry, offset):
                size += len(chunk)
                if self.after is not None and size > self.after:
                    raise PartnerAway("acme", "the connection was lost")
                yield chunk

        monkeypatch.setattr(FolderPlace, "read", read)


async def test_a_large_file_is_read_on_where_the_connection_broke(
    ends: Endpoints, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(20 << 20)
    old(share / "a.bin", b"small")
    old(share / "b.bin", content)
    breaking = Breaking(monkeypatch, 9 << 20)
    action = reading("*.bin", at_most=2)
    error = await refused(ends, action)
    assert error.type == UNAVAILABLE
    breaking.after = None
    result = await read(ends, action)
    assert await ends.contents(result.files) == {"a.bin": b"small", "b.bin": content}
    # The small file was not read again, and the large one from where it broke off.
    assert breaking.offsets == [0, 0, 9 << 20]


async def test_a_file_that_changed_meanwhile_is_read_from_its_beginning(
    ends: Endpoints, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old(share / "b.bin", os.urandom(20 << 20))
    breaking = Breaking(monkeypatch, 9 << 20)
    await refused(ends, reading("b.bin"))
    content = os.urandom(20 << 20)
    old(share / "b.bin", content, age=1_800)
    breaking.after = None
    result = await read(ends, reading("b.bin"))
    assert await ends.contents(result.files) == {"b.bin": content}
    assert breaking.offsets == [0, 0]


async def write(ends: Endpoints, action: WriteFile, files: Manifest) -> ActionResult:
    order = ends.order(action, {"path": action.path}, files)
    return await environment().run(FileWriting(ends.ports).write_file, order)


async def test_every_file_is_written_under_its_name(ends: Endpoints, share: Path) -> None:
    action = WriteFile(partner="acme", path="out/{stem}-done{suffix}", mode="0600", keep_time=True)
    order = ends.order(action, {"path": action.path})
    files = await ends.staged(order, **{"a.csv": b"one", "b.csv": b"two"})
    result = await write(ends, action, files)
    assert (share / "out" / "a-done.csv").read_bytes() == b"one"
    assert (share / "out" / "b-done.csv").stat().st_mode & 0o777 == 0o600
    assert (share / "out" / "b-done.csv").stat().st_mtime == NOON.timestamp()
    assert result.guarantee == "read back, atomic rename"
    assert result.files == files


async def test_done_again_nothing_is_written_twice(ends: Endpoints, share: Path) -> None:
    action = WriteFile(partner="acme", path="{name}", overwrite=Overwrite.NUMBER)
    files = await ends.staged(ends.order(action, {"path": "{name}"}), **{"a.csv": b"one"})
    await write(ends, action, files)
    again = await write(ends, action, files)
    assert again.guarantee is not None and again.guarantee.startswith("read back")
    (share / "a.csv").unlink()
    # The partner has picked it up; a worker that was killed does not know.
    gone = await write(ends, action, files)
    assert gone.guarantee is not None and gone.guarantee.startswith("picked up")
    assert list(share.iterdir()) == []


async def test_the_same_name_with_other_content_is_refused_and_says_how_far_it_came(
    ends: Endpoints, share: Path
) -> None:
    old(share / "b.csv", b"theirs")
    action = WriteFile(partner="acme", path="{name}")
    files = await ends.staged(
        ends.order(action, {"path": "{name}"}), **{"a.csv": b"one", "b.csv": b"two"}
    )
    with pytest.raises(ApplicationError, match=r"1 of 2 files are written.*another file") as raised:
        await write(ends, action, files)
    assert raised.value.type == TRANSIENT
    assert (share / "a.csv").read_bytes() == b"one"
    (share / "b.csv").unlink()
    await write(ends, action, files)
    assert (share / "b.csv").read_bytes() == b"two"


async def test_two_files_of_one_name_are_refused_before_any_is_written(
    ends: Endpoints, share: Path
) -> None:
    action = WriteFile(partner="acme", path="out.csv")
    files = await ends.staged(
        ends.order(action, {"path": "out.csv"}), **{"a.csv": b"one", "b.csv": b"two"}
    )
    with pytest.raises(ApplicationError, match="2 files would be written") as raised:
        await write(ends, action, files)
    assert raised.value.type == PERMANENT
    assert list(share.iterdir()) == []


async def test_a_record_that_cannot_be_used_is_waited_for_and_no_file_fails_for_it(
    tmp_path: Path, share: Path
) -> None:
    old(share / "a.csv", b"x")
    right = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(share))
    wrong = (
        right.model_copy(update={"container": "/elsewhere"}),
        Partner(name="acme", kind=PlaceKind.S3, container="far", user="u", token="env:NOT_THERE"),
    )
    for record in wrong:
        ends = Endpoints.at(tmp_path, record)
        error = await refused(ends, reading("a.csv"))
        assert error.type == UNAVAILABLE
        assert "DOCFLOW_TRANSFERS_FOLDERS" in str(error) or "env:NOT_THERE" in str(error)
        with pytest.raises(PartnerAway):
            await partner_probe(ends.ports.places, ends.partners, "acme")
        await ends.partners.put(right)
        await partner_probe(ends.ports.places, ends.partners, "acme")
        assert (await read(ends, reading("a.csv"))).files.files == 1


async def test_an_action_at_an_endpoint_that_loses_its_workers_is_refused(
    ends: Endpoints, share: Path
) -> None:
    old(share / "in" / "a.csv", b"one")
    reads = ends.order(reading("in/a.csv", after=AfterSource.DELETE), {"path": "in/a.csv"})
    files = (await read(ends, reading("in/a.csv"))).files
    writes = ends.order(WriteFile(partner="acme"), {"path": "{name}"}, files)
    calls = ends.order(CallHttp(partner="acme"), {"path": "/"}, files)
    assert isinstance(reads.action, ReadFile)
    settles = SettleInput(job=reads.job, index=0, action=reads.action, files=files, succeeded=True)
    for run, order, work in (
        (FileReading(ends.ports).read_file, reads, "carried out ReadFile"),
        (FileWriting(ends.ports).write_file, writes, "carried out WriteFile"),
        (HttpCalling(ends.ports).call_http, calls, "carried out CallHttp"),
        (SourceSettling(ends.ports).settle_source, settles, "moved or deleted sources"),
    ):
        lost = environment(attempt=LOST_WORKERS + 1, heartbeat_details=({"ended": 0},))
        with pytest.raises(ApplicationError, match=f"lost.* while they {work}") as raised:
            await lost.run(run, order)
        assert raised.value.type == WORKERS_LOST
    assert (share / "in" / "a.csv").exists() and not (share / "a.csv").exists()


async def test_a_partner_that_was_removed_is_waited_for_no_longer(ends: Endpoints) -> None:
    await ends.partners.remove("acme")
    await partner_probe(ends.ports.places, ends.partners, "acme")
    assert "no partner acme" in str(await refused(ends, reading("a.csv")))


async def test_a_partner_without_a_record_is_named(ends: Endpoints) -> None:
    order = ends.order(ReadFile(partner="nobody", path="a"), {"path": "a"})
    with pytest.raises(ApplicationError, match="no partner nobody"):
        await environment().run(FileReading(ends.ports).read_file, order)


async def test_what_was_probed_is_kept_with_the_record(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    from tests.support.transfers.sftp_server import PASSWORD, WithoutPosixRename, sftp_site

    async with sftp_site(folder, WithoutPosixRename) as site:
        ends = Endpoints.at(tmp_path, site.partner(), secrets={"SFTP_PASSWORD": PASSWORD})
        action = WriteFile(partner="acme", path="{name}")
        files = await ends.staged(ends.order(action, {"path": "{name}"}), **{"a.csv": b"one"})
        await write(ends, action, files)
    kept = await ends.partners.get("acme")
    assert kept is not None and kept.profile is not None
    assert kept.profile.rename is Rename.NON_ATOMIC


async def test_an_unknown_host_key_stops_the_partner_once_and_every_run_waits(
    tmp_path: Path,
) -> None:
    import asyncssh

    from tests.support.transfers.sftp_server import PASSWORD, pinned, sftp_site

    other = asyncssh.generate_private_key("ssh-ed25519")
    async with sftp_site(tmp_path / "served") as site:
        (tmp_path / "served" / "a.csv").write_bytes(b"x")
        partner = site.partner(host_keys=(pinned(other),))
        ends = Endpoints.at(tmp_path, partner, secrets={"SFTP_PASSWORD": PASSWORD})
        for _ in range(3):
            error = await refused(ends, reading("a.csv"))
            assert error.type == UNAVAILABLE
            assert site.host_key.get_fingerprint() in str(error)
            assert other.get_fingerprint() in str(error)
            assert "docflow partner key add acme" in str(error)
        with pytest.raises(PartnerAway, match="is stopped"):
            await partner_probe(ends.ports.places, ends.partners, "acme")
        stopped = await ends.partners.get("acme")
        # Written once: the others found it so.
        assert stopped is not None and stopped.revision == 2
        cured = stopped.model_copy(update={"host_keys": (pinned(site.host_key),), "stopped": None})
        await ends.partners.put(cured)
        await partner_probe(ends.ports.places, ends.partners, "acme")
        assert (await read(ends, reading("a.csv"))).files.files == 1
