"""What actions do with the staged files of a run, and what they say of it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.shared.failures import LOST_WORKERS
from activities.transfers.archives import ArchivePorts, ArchiveSteps
from activities.transfers.cloud_events import head_of, read_event
from activities.transfers.crypto import Checksums
from activities.transfers.receipt import ReceiptDeps, Receipts
from activities.transfers.reception import Firing
from adapters.files.archives import ArchiveFiles
from adapters.staging import BlobCopies, SealedBlobs, StagingKeys
from tests.support.imports.activities import environment
from tests.support.transfers.actions import TRANSFER, Endpoints, step_of
from tests.support.transfers.archives import gzip_of, tar_of, zip_of
from tests.support.transfers.secrets import PlantedSecrets
from workflows.shared.errors import INVALID_DOCUMENT, PERMANENT, UNREADABLE_DOCUMENT
from workflows.transfers.receipts import ReceiptStep, verify
from workflows.transfers.runs import (
    ActionResult,
    KeepCopyInput,
    Manifest,
    ReceiptInput,
    receipt_blob,
)
from workflows.transfers.settings import ArchiveFormat, Checksum, Compress, Extract, FireEvent

CSV = b"stop;lat;lon\n" * 500
PASSWORD = "correct hörse"


@pytest.fixture
def ends(tmp_path: Path) -> Endpoints:
    return Endpoints.at(tmp_path)


async def failure(activity: Any, order: Any) -> ApplicationError:
    with pytest.raises(ApplicationError) as failed:
        await environment().run(activity, order)
    return failed.value


class Archived:
    """Archives of a run."""

    def __init__(self, ends: Endpoints) -> None:
        self.ends = ends
        secrets = PlantedSecrets()
        secrets.values["env:ZIP"] = PASSWORD + "\n"
        self.steps = ArchiveSteps(
            ArchivePorts(ArchiveFiles(), secrets, ends.ports.staging, ends.scratch / "scratch")
        )

    async def compress(
        self, files: Mapping[str, bytes], action: Compress, name: str = "{name}"
    ) -> ActionResult:
        order = self.ends.order(action, {"name": name})
        order = order.model_copy(update={"files": await self.ends.staged(order, **files)})
        return await environment().run(self.steps.compress, order)

    async def extract(self, manifest: Manifest, **settings: Any) -> ActionResult:
        order = self.ends.order(Extract(**settings), {}, manifest)
        return await environment().run(self.steps.extract, order)


@pytest.mark.parametrize(
    ("format", "suffix"),
    [(ArchiveFormat.ZIP, ".zip"), (ArchiveFormat.TAR, ".tar"), (ArchiveFormat.TAR_GZ, ".tar.gz")],
)
async def test_files_go_into_one_archive_and_out_again(
    ends: Endpoints, format: ArchiveFormat, suffix: str
) -> None:
    archived = Archived(ends)
    files = {"a.csv": CSV, "out/b.csv": b"1"}
    packed = await archived.compress(files, Compress(format=format), "all")
    assert list(await ends.contents(packed.files)) == [f"all{suffix}"]
    step = await step_of(ends, packed)
    assert [line.sha256_before for line in step.files[:2]] == [
        hashlib.sha256(content).hexdigest() for content in files.values()
    ]
    unpacked = await archived.extract(packed.files)
    assert await ends.contents(unpacked.files) == files
    assert unpacked.remarks == ()


async def test_an_empty_file_of_an_archive_is_a_remark(ends: Endpoints) -> None:
    archived = Archived(ends)
    files = {"a.csv": CSV, "none.csv": b""}
    packed = await archived.compress(files, Compress(format=ArchiveFormat.ZIP), "all")
    unpacked = await archived.extract(packed.files)
    assert await ends.contents(unpacked.files) == files
    assert unpacked.remarks == ("1 of 2 files are empty",)


async def test_an_action_that_loses_its_workers_again_and_again_is_refused(ends: Endpoints) -> None:
    order = ends.order(Extract(), {})
    order = order.model_copy(update={"files": await ends.staged(order, **{"a.zip": b"PK"})})
    lost = environment(attempt=LOST_WORKERS + 1, heartbeat_details=({"ended": 0},))
    with pytest.raises(ApplicationError, match=r"workers in a row were lost.* carried out Extract"):
        await lost.run(Archived(ends).steps.extract, order)


async def test_each_file_gets_a_gzip_file_of_its_own(ends: Endpoints) -> None:
    archived = Archived(ends)
    packed = await archived.compress(
        {"a.csv": CSV, "b.csv": b"1"}, Compress(format=ArchiveFormat.GZIP)
    )
    assert list(await ends.contents(packed.files)) == ["a.csv.gz", "b.csv.gz"]
    unpacked = await archived.extract(packed.files)
    assert await ends.contents(unpacked.files) == {"a.csv": CSV, "b.csv": b"1"}


async def test_a_password_encrypts_and_one_that_was_not_needed_is_a_remark(ends: Endpoints) -> None:
    archived = Archived(ends)
    secret = Compress(format=ArchiveFormat.ZIP, password="env:ZIP")
    packed = await archived.compress({"a.csv": CSV}, secret)
    assert CSV[:20] not in next(iter((await ends.contents(packed.files)).values()))
    unpacked = await archived.extract(packed.files, password="env:ZIP")
    assert await ends.contents(unpacked.files) == {"a.csv": CSV}
    order = ends.order(Extract(), {}, packed.files)
    without = await failure(archived.steps.extract, order)
    assert without.type == UNREADABLE_DOCUMENT
    assert "'a.csv.zip': it is encrypted, and no password is set" in without.message
    plain = await archived.compress({"a.csv": CSV}, Compress(format=ArchiveFormat.ZIP))
    reported = await archived.extract(plain.files, password="env:ZIP")
    assert reported.remarks == (
        "'a.csv.zip': 1 files were not encrypted, although a password is set",
    )
    assert PASSWORD not in str(without) + repr(reported)


async def test_settings_that_make_no_archive_are_refused(ends: Endpoints) -> None:
    archived = Archived(ends)
    for action, message in (
        (Compress(format=ArchiveFormat.TAR, password="env:ZIP"), "only a ZIP archive"),
        (Compress(format=ArchiveFormat.ZIP), "another one for each of the 2 files"),
    ):
        with pytest.raises(ApplicationError, match=message) as failed:
            await archived.compress({"a.csv": CSV, "b.csv": b"1"}, action)
        assert failed.value.type == PERMANENT
    order = ends.order(Extract(), {})
    assert (
        "a ReadFile has to stand before it"
        in (await failure(archived.steps.extract, order)).message
    )


@pytest.mark.parametrize(
    ("content", "type", "message"),
    [
        (zip_of({"../a": b""}), INVALID_DOCUMENT, "'in': the name '../a' leads out of its folder"),
        (gzip_of(bytes(80 << 20)), UNREADABLE_DOCUMENT, "RatioAtMost"),
        (tar_of({"a": b"1"})[:700], UNREADABLE_DOCUMENT, "damaged tar archive, or cut off"),
        (b"plain", UNREADABLE_DOCUMENT, "not an archive"),
    ],
)
async def test_a_hostile_archive_fails_the_action_and_leaves_nothing_behind(
    ends: Endpoints, content: bytes, type: str, message: str
) -> None:
    archived = Archived(ends)
    order = ends.order(Extract(), {})
    manifest = await ends.staged(order, **{"good": zip_of({"x": b"1"}), "in": content})
    before = {ref.name for ref in await ends.blobs.list("staging/", 1_000)}
    failed = await failure(archived.steps.extract, order.model_copy(update={"files": manifest}))
    assert failed.type == type
    assert message in failed.message
    assert {ref.name for ref in await ends.blobs.list("staging/", 1_000)} == before
    assert not list((ends.scratch / "scratch").iterdir())


async def test_two_archives_with_one_name_in_both_are_refused(ends: Endpoints) -> None:
    order = ends.order(Extract(), {})
    both = {"1.zip": zip_of({"a": b"1"}), "2.zip": zip_of({"a": b"2"})}
    order = order.model_copy(update={"files": await ends.staged(order, **both)})
    failed = await failure(Archived(ends).steps.extract, order)
    assert (failed.type, failed.message) == (INVALID_DOCUMENT, "two files would be called 'a'")


SHA = hashlib.sha256(CSV).hexdigest()
MD5 = hashlib.md5(CSV, usedforsecurity=False).hexdigest()


async def summed(
    ends: Endpoints, action: Checksum, files: Mapping[str, bytes], expected: str | None = None
) -> ActionResult:
    names = {} if expected is None else {"expected": expected}
    order = ends.order(action, names, configured_by="ida")
    order = order.model_copy(update={"files": await ends.staged(order, **files)})
    return await environment().run(Checksums(ends.ports.staging).checksum, order)


@pytest.mark.parametrize(
    "text",
    [
        SHA,
        f"{SHA.upper()}\n",
        f"{SHA}  a.csv\n",
        f"{SHA} *a.csv\r\n",
        f"SHA256 (a.csv) = {SHA}\n",
        f"{'0' * 64}  other.csv\n{SHA}  ./a.csv\n",
    ],
)
async def test_a_file_is_compared_with_the_checksum_beside_it(ends: Endpoints, text: str) -> None:
    result = await summed(ends, Checksum(), {"a.csv": CSV, "a.csv.sha256": text.encode()})
    assert await ends.contents(result.files) == {"a.csv": CSV}
    step = await step_of(ends, result)
    assert step.configured_by == "ida"
    assert [line.verdict for line in step.files] == [f"sha256 {SHA} as expected", None]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.csv": CSV, "a.csv.sha256": b"0" * 64}, "'a.csv' was changed"),
        ({"a.csv": CSV}, "'a.csv' has no checksum beside it"),
        ({"a.csv": CSV, "a.csv.sha256": SHA.encode(), "b.sha256": b"x"}, "belongs to no file"),
        ({"a.csv": CSV, "a.csv.sha256": b"nonsense"}, "holds no sha256 of 'a.csv'"),
        ({"a.csv": CSV, "a.csv.sha256": MD5.encode()}, "holds no sha256 of 'a.csv'"),
        ({"a.csv": CSV, "a.csv.sha256": f"{SHA} b\n{SHA} c".encode()}, "holds no sha256"),
        ({"a.csv": CSV, "a.csv.sha256": bytes(70_000)}, "too long for a checksum"),
    ],
)
async def test_a_checksum_that_is_not_that_of_its_file_is_refused(
    ends: Endpoints, files: Mapping[str, bytes], message: str
) -> None:
    with pytest.raises(ApplicationError, match=message) as failed:
        await summed(ends, Checksum(), files)
    assert failed.value.type == INVALID_DOCUMENT


async def test_an_event_may_bring_the_checksum(ends: Endpoints) -> None:
    md5 = Checksum(algorithm="md5", expected="{data.md5}")
    result = await summed(ends, md5, {"a.csv": CSV}, MD5.upper())
    assert (await step_of(ends, result)).files[0].verdict == f"md5 {MD5} as expected"
    for expected, message in ((SHA, "is not md5"), ("0" * 32, "was changed")):
        with pytest.raises(ApplicationError, match=message):
            await summed(ends, md5, {"a.csv": CSV}, expected)
    with pytest.raises(ApplicationError, match="there are 2 files"):
        await summed(ends, md5, {"a.csv": CSV, "b.csv": CSV}, MD5)


async def test_a_checksum_is_written_beside_each_file(ends: Endpoints) -> None:
    written = await summed(ends, Checksum(write=True), {"out/a.csv": CSV})
    assert (await ends.contents(written.files))["out/a.csv.sha256"] == f"{SHA}  a.csv\n".encode()
    order = ends.order(Checksum(), {}, written.files)
    compared = await environment().run(Checksums(ends.ports.staging).checksum, order)
    assert list(await ends.contents(compared.files)) == ["out/a.csv"]


@dataclass
class RememberedEvents:
    """Keeps what is sent."""

    sent: list[tuple[str, str | None]] = field(default_factory=list)

    async def send(self, body: str, queue: str | None) -> str:
        self.sent.append((body, queue))
        return head_of(body).transfer_id


async def fired(
    ends: Endpoints, names: dict[str, str], files: Sequence[str] = (), depth: int = 0
) -> tuple[ActionResult, list[tuple[str, str | None]]]:
    sender = RememberedEvents()
    action = FireEvent(queue="jobstmsroute", source="s", subject="u")
    order = ends.order(action, names, settings_job="route")
    job = order.job.model_copy(
        update={"event": order.job.event.model_copy(update={"depth": depth, **OWNED})}
    )
    order = order.model_copy(update={"job": job})
    if files:
        staged = await ends.staged(order, **dict.fromkeys(files, b"1"))
        order = order.model_copy(update={"files": staged})
    firing = Firing(sender, ends.ports.staging)
    await environment().run(firing.fire_event, order)
    result = await environment().run(firing.fire_event, order)
    half = len(sender.sent) // 2
    assert sender.sent[:half] == sender.sent[half:], "done again, it sends the same"
    return result, sender.sent[:half]


OWNED = {"organisation_id": 3}
NAMES = {"source": "docflow", "type": "Succeeded", "subject": "routed", "account_id": "A1"}


async def test_an_event_is_sent_once_with_its_chain(ends: Endpoints) -> None:
    result, sent = await fired(ends, {**NAMES, "data.order": "7"}, ["a.csv", "b.csv"], depth=3)
    ((body, queue),) = sent
    event = read_event(body, datetime.now(UTC))
    assert queue == "jobstmsroute"
    assert (event.source, event.type, event.subject) == ("docflow", "Succeeded", "routed")
    assert (event.account_id, event.data["order"], event.depth) == ("A1", "7", 4)
    assert event.organisation_id == 3
    assert [visit.split("/")[:2] for visit in event.visited] == [["jobs", "route"]]
    assert event.id.startswith(f"{TRANSFER}-0-")
    assert result.fired == (head_of(body).transfer_id,)
    assert list(await ends.contents(result.files)) == ["a.csv", "b.csv"]


async def test_an_event_that_names_the_file_is_sent_for_each(ends: Endpoints) -> None:
    _, sent = await fired(ends, {**NAMES, "data.fileName": "{name}"}, ["a.csv", "b.csv"])
    events = [read_event(body, datetime.now(UTC)) for body, _ in sent]
    assert [event.data["fileName"] for event in events] == ["a.csv", "b.csv"]
    assert len({event.id for event in events}) == 2


async def test_actions_do_nothing_where_no_file_was_found_and_none_is_required(
    ends: Endpoints,
) -> None:
    archived, summing = Archived(ends), Checksums(ends.ports.staging)
    none = await ends.staged(ends.order(Checksum(), {}))
    for run, action, names in (
        (summing.checksum, Checksum(), {}),
        (summing.checksum, Checksum(expected="x"), {"expected": "x"}),
        (archived.steps.extract, Extract(), {}),
        (archived.steps.compress, Compress(format=ArchiveFormat.ZIP), {"name": "{name}"}),
        (archived.steps.compress, Compress(format=ArchiveFormat.GZIP), {"name": "{name}"}),
    ):
        result = await environment().run(run, ends.order(action, names, none))
        assert (result.files.files, result.infected) == (0, None)


async def test_no_event_is_sent_of_a_file_that_is_not_there(ends: Endpoints) -> None:
    names = {**NAMES, "data.fileName": "{name}"}
    firing = Firing(sender := RememberedEvents(), ends.ports.staging)
    fire = FireEvent(source="s", subject="u")
    none = await ends.staged(ends.order(fire, names))
    result = await environment().run(firing.fire_event, ends.order(fire, names, none))
    assert sender.sent == [] and "no event was sent" in result.remarks[0]
    failed = await failure(firing.fire_event, ends.order(fire, names))
    assert "a ReadFile has to stand before it" in failed.message


async def test_a_chain_that_is_too_long_ends(ends: Endpoints) -> None:
    with pytest.raises(ApplicationError, match="32 are the most"):
        await fired(ends, NAMES, depth=32)


async def test_a_receipt_is_put_together_and_a_copy_is_kept(ends: Endpoints) -> None:
    secrets = PlantedSecrets()
    secrets.values["env:KEY"] = "ab" * 32
    copies = BlobCopies(SealedBlobs(ends.blobs, StagingKeys(secrets, "env:KEY")))
    receipts = Receipts(ReceiptDeps(ends.blobs, copies, ends.ports.staging))
    first = await summed(ends, Checksum(write=True), {"a.csv": CSV})
    order = ends.order(Checksum(), {}, first.files)
    order = order.model_copy(update={"index": 1, "previous": first.step_sha256})
    second = await environment().run(Checksums(ends.ports.staging).checksum, order)
    kept = await environment().run(
        receipts.keep, KeepCopyInput(job=order.job, files=second.files, days=3)
    )
    assert kept.until == (datetime.now(UTC) + timedelta(days=3)).date()
    assert first.step is not None
    assert second.step is not None
    job = order.job.model_copy(update={"digest": "e" * 64})
    asked = ReceiptInput(job=job, steps=(first.step, second.step), kept=kept.files.blob)
    stored = await environment().run(receipts.receipt, asked)
    again = await environment().run(receipts.receipt, asked)
    assert (stored.sha256, stored.steps, again.blob.name) == (
        second.step_sha256,
        2,
        stored.blob.name,
    )
    assert stored.blob.name == receipt_blob(TRANSFER)
    text = b"".join([piece async for piece in ends.blobs.read(stored.blob.name)])
    assert verify(json.loads(text), expected=second.step_sha256).whole
    resent = job.model_copy(update={"transfer_id": TRANSFER, "resent_from": TRANSFER})
    linked = await environment().run(
        receipts.receipt, ReceiptInput(job=resent, steps=(first.step,))
    )
    text = b"".join([piece async for piece in ends.blobs.read(linked.blob.name)])
    assert json.loads(text)["resent_from_sha256"] == second.step_sha256
    swapped = ReceiptInput(job=job, steps=(second.step, first.step))
    failed = await failure(receipts.receipt, swapped)
    assert "cannot be put together" in failed.message
    brief = order.model_copy(update={"inline_step": True})
    inline = await environment().run(Checksums(ends.ports.staging).checksum, brief)
    assert inline.step is None
    short = ReceiptStep.model_validate_json(inline.inline_step)
    mixed = ReceiptInput(job=job, steps=(first.step,), outcomes=(short,))
    same = await environment().run(receipts.receipt, mixed)
    assert (same.sha256, same.steps) == (inline.step_sha256, 2)
