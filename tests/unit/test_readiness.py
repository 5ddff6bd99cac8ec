"""What a process does about something that is missing, and what it says."""

import asyncio
import errno
import logging
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports.errors import Denied, Unavailable
from tests.sixth.register import PARCELS
from tests.support.bridges import running
from tests.support.cli_fakes import FakeInstallation
from tests.support.memory_queue import MemoryQueue, MemoryTransport
from tests.support.waiting import eventually
from workers.shared.bridges.consumer import BridgeTotals, Consumer, Limits, QueueUnusable, Retry
from workers.shared.errors import SettingsError
from workers.shared.gateway.process import Entrance
from workers.shared.health import Health
from workers.shared.process import _receive
from workers.shared.register import Bridge, Context
from workers.shared.services import requirements
from workers.shared.services.bodies import Abandon, Settle, Verdict
from workers.shared.services.intake import given_back
from workers.shared.services.readiness import NotReady, Pauses, Readiness
from workers.shared.services.requirements import (
    Finding,
    Requirement,
    State,
    container_of,
    scratch_of,
    seldom,
)
from workers.shared.services.setup import notices_of, set_up
from workers.shared.services.temporal_requirements import Connection
from workers.shared.settings.common import BlobSettings
from workers.shared.tables import open_blobs

AT_ONCE = Pauses(first=0.01, longest=0.01, settled=0.01)


class Shelf:
    """Something that is there, or is not."""

    def __init__(self, finding: Finding) -> None:
        self.finding: Finding | Exception = finding
        self.looks = 0

    async def look(self) -> Finding:
        self.looks += 1
        if isinstance(self.finding, Exception):
            raise self.finding
        return self.finding

    def requirement(self, *, needed: bool = True) -> Requirement:
        return Requirement(
            "shelf", self.look, "nothing is kept", "buy one", watch=self.look, needed=needed
        )


MISSING = Finding(State.MISSING, "there is no shelf")
SAYS = "shelf: there is no shelf; nothing is kept; buy one"
THERE = Finding(State.OK, "there")


async def test_what_is_missing_is_waited_for_and_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    shelf, health = Shelf(MISSING), Health()
    readiness = Readiness([shelf.requirement()], health, AT_ONCE)
    with caplog.at_level(logging.INFO, "workers.shared.services.readiness"):
        waiting = asyncio.create_task(readiness.until_met(asyncio.Event()))

        async def looked_often() -> bool:
            return shelf.looks >= 3

        await eventually(looked_often)
        assert (health.is_blocked, health.problems) == (True, [SAYS])
        shelf.finding = Unavailable("the shop is closed")

        async def says_so() -> bool:
            return health.problems == ["shelf: the shop is closed"]

        await eventually(says_so)
        shelf.finding = THERE
        assert await waiting
    assert (health.is_blocked, health.problems) == (False, [])
    assert caplog.messages == [
        f"not ready: {SAYS}",
        "not ready: shelf: the shop is closed",
        "everything is there again",
    ]


async def test_a_stop_ends_the_wait() -> None:
    stop = asyncio.Event()
    waiting = asyncio.create_task(Readiness([Shelf(MISSING).requirement()]).until_met(stop))
    stop.set()
    assert not await waiting


async def test_a_good_answer_of_a_seldom_check_holds_and_a_bad_one_does_not() -> None:
    shelf = Shelf(THERE)
    check = seldom(shelf.look, seconds=60)
    assert [(await check()).state for _ in range(3)] == [State.OK] * 3
    assert shelf.looks == 1
    shelf.finding = MISSING
    again = seldom(shelf.look, seconds=60)
    assert [(await again()).state for _ in range(2)] == [State.MISSING] * 2
    assert shelf.looks == 3


async def test_a_full_or_missing_disk_is_named_with_its_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = scratch_of(tmp_path / "scratch")
    assert (await disk.found()).problem is None

    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        watched = await disk.watched()
    assert watched is not None and watched.problem == (
        f"scratch disk: the folder {tmp_path}/scratch of DOCFLOW_SCRATCH: "
        "the scratch disk is full; make room there, or correct it"
    )
    (tmp_path / "file").write_text("")
    within_a_file = await scratch_of(tmp_path / "file" / "scratch").found()
    assert "of DOCFLOW_SCRATCH: no file can be made on the scratch disk: Not a directory" in (
        within_a_file.problem or ""
    )


async def test_a_missing_blob_folder_is_named_with_its_setting(tmp_path: Path) -> None:
    settings = BlobSettings(root=tmp_path / "blobs", container="documents")
    watched = await container_of(settings).watched()
    place = f"{tmp_path}/blobs/documents"
    assert watched is not None
    assert f"the folder {place} of DOCFLOW_BLOB_FOLDER is missing" in watched.details
    for work in (open_blobs(settings).probe(), open_blobs(settings).stat("a.csv")):
        with pytest.raises(Unavailable, match=f"{place} \\(DOCFLOW_BLOB_FOLDER\\), is missing"):
            await work


def test_setup_names_a_wrong_notice_policy_and_says_which_ways_there_are() -> None:
    wrong = {"DOCFLOW_NOTIFY_POLICY": '{"import": {}}', "DOCFLOW_PUBLIC_URL": "nowhere"}
    problems = [notices_of({name: value}) for name, value in wrong.items()]
    assert [(each.finding.state, each.is_there) for each in problems] == [
        (State.UNAVAILABLE, False)
    ] * 2
    assert "DOCFLOW_NOTIFY_POLICY names 'import'" in problems[0].details
    assert "DOCFLOW_PUBLIC_URL" in problems[1].details
    mail = {"DOCFLOW_SMTP_URL": "smtp://host", "DOCFLOW_NOTIFY_FROM": "a@example.org"}
    assert (notices_of(mail).finding.state, notices_of(mail).details) == (State.OK, "by mail")
    assert notices_of({}).finding.state is State.LEFT_OUT


async def test_what_fails_later_is_seen_and_its_return_too() -> None:
    shelf, health, stop = Shelf(THERE), Health(), asyncio.Event()
    readiness = Readiness([shelf.requirement()], health, AT_ONCE)
    assert await readiness.until_met(stop)
    watching = asyncio.create_task(readiness.watch(stop))

    async def is_blocked() -> bool:
        return health.is_blocked

    async def is_open() -> bool:
        return not health.is_blocked

    shelf.finding = Unavailable("the shop is closed")
    await eventually(is_blocked)
    shelf.finding = THERE
    await eventually(is_open)
    stop.set()
    await watching


@pytest.mark.parametrize(
    ("finding", "needed"),
    [(MISSING, False), (Finding(State.UNKNOWN, "we may not ask"), True)],
    ids=["a warning", "a right that a process does not need"],
)
async def test_a_process_does_not_wait_for(finding: Finding, needed: bool) -> None:
    requirement = Shelf(finding).requirement(needed=needed)
    assert await Readiness([requirement]).until_met(asyncio.Event())
    assert not (await requirement.found()).is_there


async def test_a_drain_waits_for_nothing() -> None:
    with pytest.raises(NotReady, match="there is no shelf; nothing is kept; buy one"):
        await Readiness([Shelf(MISSING).requirement()]).require()


async def test_a_setting_that_cannot_be_used_ends_the_wait() -> None:
    shelf = Shelf(THERE)
    shelf.finding = SettingsError("SHELF must be a number")
    with pytest.raises(SettingsError, match="SHELF must be a number"):
        await Readiness([shelf.requirement()]).until_met(asyncio.Event())


async def test_a_check_without_an_end_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "CHECK_SECONDS", 0.01)

    async def look() -> Finding:
        await asyncio.Event().wait()
        raise AssertionError

    found = await Requirement("shelf", look, "nothing is kept", "buy one").found()
    assert found.finding.state is State.UNAVAILABLE
    assert "no answer within 0 s" in found.finding.says


async def test_a_blocked_bridge_receives_nothing() -> None:
    async def settle(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        return Settle(raw.decode())

    class Asked(Health):
        asked = 0

        @property
        def is_blocked(self) -> bool:
            self.asked += 1
            return super().is_blocked

    queue, process = MemoryQueue(), Health(missing=[SAYS])
    part = Asked(whole=process)
    queue.send("1")
    transport = MemoryTransport(queue)
    consumer = Consumer(transport, settle, Limits(wait=0.2, quiet=0.5), health=part)
    assert await consumer.run(asyncio.Event(), drain=True) == BridgeTotals()
    async with running(consumer) as stopped:
        part.asked = 0

        async def was_asked() -> bool:
            return part.asked >= 2

        await eventually(was_asked)
        assert transport.calls["receive"] == 0
        process.missing = ()

        async def is_empty() -> bool:
            return queue.left == 0

        await eventually(is_empty)
        assert (await stopped()).settled == 1


async def test_a_bridge_whose_queue_is_missing_opens_it_again_later(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pauses = Retry(first_pause=0.01, longest_pause=0.01)
    monkeypatch.setattr("workers.shared.process._QUEUE_PAUSES", pauses)
    runs: list[Health] = []

    async def run(
        context: Context, settings: object, stop: asyncio.Event, drain: bool
    ) -> BridgeTotals:
        runs.append(context.health)
        if len(runs) < 3:
            raise QueueUnusable("there is no queue")
        context.health.take()
        return BridgeTotals(received=1)

    health = Health(ready=True)
    monkeypatch.setitem(sys.modules, "post_office", SimpleNamespace(receive=run))
    bridge = Bridge("post", "Receive.", lambda environment: None, "post_office:receive")
    client: Client = None  # pyright: ignore[reportAssignmentType] - the bridge uses none
    receive = _receive(bridge, Context({}, client, None, health), None)
    receiving = asyncio.create_task(receive(asyncio.Event()))
    seen: list[Sequence[str]] = []

    async def has_ended() -> bool:
        seen.append(health.problems)
        return receiving.done()

    await eventually(has_ended, pause=0)
    assert await receiving == BridgeTotals(received=1)
    assert ["post: there is no queue"] in seen
    assert health.problems == []
    assert caplog.messages == ["not ready: there is no queue"]


async def test_a_gateway_that_is_not_ready_answers_everything_with_503() -> None:
    health = Health(missing=[SAYS])
    entrance = Entrance(health)
    transport = httpx.ASGITransport(entrance)
    async with httpx.AsyncClient(transport=transport, base_url="http://gateway") as client:
        assert (await client.get("/health/live")).status_code == 200
        ready = await client.get("/health/ready")
        assert (ready.status_code, ready.json()["problems"]) == (503, [SAYS])
        refused = await client.post("/api/imports", content=b"x")
        assert refused.status_code == 503
        assert refused.headers["content-type"] == "application/problem+json"
        # Whoever calls has no business with what is missing.
        assert "shelf" not in refused.text and refused.headers["retry-after"] == "5"


async def test_a_browser_is_shown_a_page_by_a_gateway_that_is_not_ready() -> None:
    transport = httpx.ASGITransport(Entrance(Health(missing=[SAYS])))
    headers = {"accept": "text/html,*/*;q=0.8", "accept-language": "de"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://gateway", headers=headers
    ) as client:
        refused = await client.get("/uploads")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert "docflow startet gerade." in refused.text and "shelf" not in refused.text
        assert "default-src 'none'" in refused.headers["content-security-policy"]
        style = refused.text.split('<link rel="stylesheet" href="')[1].split('"')[0]
        assert (await client.get(style)).headers["content-type"].startswith("text/css")


@pytest.mark.parametrize(
    "message",
    [
        "Namespace size-limit has no mapping defined for search attribute Pipeline",
        "search attribute Pipeline is not defined; exceeds nothing",
    ],
)
def test_a_message_is_not_at_fault_for_a_missing_search_attribute(message: str) -> None:
    verdict = given_back(RPCError(message, RPCStatusCode.INVALID_ARGUMENT, b""))
    assert isinstance(verdict, Abandon) and "docflow setup" in verdict.reason


async def test_setup_asks_every_pipeline_and_bridge(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, empty_url: str
) -> None:
    shelf = Shelf(MISSING)

    @asynccontextmanager
    async def opened(environment: dict[str, str]) -> AsyncIterator[list[Requirement]]:
        if "PARCELS_FOLDER" not in environment:
            raise SettingsError("missing setting: PARCELS_FOLDER")
        yield [shelf.requirement()]

    async def unreachable() -> Client:
        raise Denied("no Temporal here")

    monkeypatch.setattr(f"{__name__}.opened_by_register", opened, raising=False)
    entry = f"{__name__}:opened_by_register"
    [post] = PARCELS.bridges
    parcels = replace(PARCELS, requirements=entry, bridges=(replace(post, requirements=entry),))
    environment = {
        "DATABASE_URL": empty_url,
        "DOCFLOW_BLOB_FOLDER": str(tmp_path),
    }

    async def results(**settings: str) -> list[tuple[str, State]]:
        asked = set_up(environment | settings, Connection(unreachable), [parcels], only_check=True)
        return [(each.requirement.name, each.finding.state) async for each in asked]

    common = [
        ("search attributes", State.UNAVAILABLE),
        ("database schema", State.MISSING),
        ("blob folder", State.MISSING),
        ("fairness", State.UNKNOWN),
        ("notices", State.LEFT_OUT),
    ]
    assert await results() == [*common, ("parcels", State.LEFT_OUT)]
    assert await results(PARCELS_GRAMS="10") == [
        *common,
        ("parcels", State.UNAVAILABLE),
        ("parcel-post", State.UNAVAILABLE),
    ]
    settings = {"PARCELS_GRAMS": "10", "PARCELS_FOLDER": "/"}
    assert await results(**settings) == [*common, *[("shelf", State.MISSING)] * 2]


def test_an_unknown_pipeline_is_no_installation() -> None:
    done = FakeInstallation().docflow("setup", "letters")
    assert (done.exit_code, "unknown pipeline letters; known are" in done.stderr) == (2, True)
