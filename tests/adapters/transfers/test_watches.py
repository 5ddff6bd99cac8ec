"""Looks of watches over real tables: a local folder, and an endpoint in memory."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.transfers.watches import Watching, WatchPorts
from adapters.database import Database
from adapters.database.transfers.watches import SqlWatchStore
from adapters.memory.transfers.partners import MemoryPartners
from adapters.ports.transfers import StatusRow
from contracts.errors import PERMANENT, UNAVAILABLE
from contracts.transfers import Partner, PlaceKind, TransferStatus
from contracts.transfers.watches import LookFailure, LookOrder, LookResult, SeenFile, Watch
from domain.transfers.events import head_of, read_event
from tests.support.transfers.listed_place import ListedPlaces, SentEvents
from tests.support.transfers.places import open_places

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def a_watch(**fields: Any) -> Watch:
    known = {"name": "orders", "partner": "acme", "path": "out/*.csv", "account_id": "ACME"}
    return Watch.model_validate({**known, **fields})


@dataclass
class Rows:
    """As `TransferStore`: the states of transfers, which a test writes."""

    states: dict[str, list[StatusRow]] = field(default_factory=dict[str, list[StatusRow]])

    def enter(self, event: str, status: TransferStatus, at: datetime) -> None:
        head = head_of(event)
        row = StatusRow(head.transfer_id, status, at, source="s", event_id="e")
        self.states.setdefault(head.transfer_id, []).append(row)

    async def get(self, transfer_id: str) -> StatusRow | None:
        trail = self.states.get(transfer_id)
        return trail[-1] if trail else None

    async def trail(self, transfer_id: str) -> list[StatusRow]:
        return self.states[transfer_id]


@dataclass
class Looks:
    """A watch and everything it is given; time passes between two looks."""

    store: SqlWatchStore
    places: Any
    watch: Watch = field(default_factory=a_watch)
    partner: Partner = field(default_factory=lambda: Partner(name="acme", kind=PlaceKind.FOLDER))
    sender: SentEvents = field(default_factory=SentEvents)
    transfers: Any = field(default_factory=Rows)
    now: datetime = NOON

    async def look(self, seconds: float = 60) -> LookResult:
        self.now += timedelta(seconds=seconds)
        partners = MemoryPartners(self.partner)
        ports = WatchPorts(
            self.places, partners, self.store, self.sender, self.transfers, lambda: self.now
        )
        order = LookOrder(watch=self.watch)
        return await ActivityEnvironment().run(Watching(ports).look, order)

    @property
    def sent(self) -> list[str]:
        return [json.loads(each)["data"]["path"] for each in self.sender.bodies]

    async def seen(self) -> dict[str, SeenFile]:
        return {each.path: each for each in await self.store.files(self.watch.name, 100)}


Make = Callable[..., Looks]


@pytest.fixture
def looks(database: Database) -> Make:
    def make(**fields: Any) -> Looks:
        return Looks(SqlWatchStore(database), ListedPlaces(), a_watch(**fields))

    return make


async def test_a_file_is_sent_once_when_two_looks_agree(database: Database, tmp_path: Path) -> None:
    partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(tmp_path))
    places = open_places(folders=[tmp_path])
    looks = Looks(SqlWatchStore(database), places, partner=partner)
    file = tmp_path / "out" / "a.csv"
    file.parent.mkdir()
    file.write_bytes(b"1,2\n")
    assert (await looks.look()).settling == 1
    with file.open("ab") as more:
        more.write(b"3,4\n")
    assert (await looks.look()).settling == 1 and looks.sent == []
    assert (await looks.look()).sent == 1
    assert await looks.look() == LookResult(files=1)
    event = read_event(looks.sender.bodies[0], NOON)
    assert (event.account_id, event.type, event.subject) == ("ACME", "Succeeded", "File Upload")
    assert (event.source, event.data["size"]) == ("docflow.watch.orders", 8)
    # The same name, size and all but the time: other content is another event.
    file.write_bytes(b"5,6\n7,8\n")
    os.utime(file, (1_800_000_000, 1_800_000_000))
    await looks.look()
    assert (await looks.look()).sent == 1
    first, second = (json.loads(each)["id"] for each in looks.sender.bodies)
    assert first != second and looks.sent == ["out/a.csv", "out/a.csv"]


async def test_an_older_file_that_comes_later_is_sent(looks: Make) -> None:
    watched = looks()
    watched.places.put("out/new.csv", changed=NOON)
    await watched.look()
    await watched.look()
    watched.places.put("out/old.csv", changed=NOON - timedelta(days=300))
    await watched.look()
    assert (await watched.look()).sent == 1
    assert watched.sent == ["out/new.csv", "out/old.csv"]


async def test_a_name_that_cannot_be_read_is_a_problem_and_the_others_are_sent(
    looks: Make,
) -> None:
    watched = looks()
    for path in ("out/a.csv", "out/b\udcfc.csv", "out/c\r\n.csv"):
        watched.places.put(path)
    assert (await watched.look()).settling == 1
    result = await watched.look()
    assert watched.sent == ["out/a.csv"] and result.files == 3
    (problem,) = result.problems
    assert problem.startswith("'out/b\\udcfc.csv' is not valid Unicode: no event is sent of it")
    assert "nor of 1 others like it" in problem


async def test_a_folder_that_is_missing_fails_the_look_and_nothing_vanishes(
    database: Database, tmp_path: Path
) -> None:
    partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(tmp_path))
    looks = Looks(SqlWatchStore(database), open_places(folders=[tmp_path]), partner=partner)
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "a.csv").write_bytes(b"1")
    await looks.look()
    folder.rename(tmp_path / "away")
    with pytest.raises(ApplicationError, match="there is no folder 'out' at acme"):
        await looks.look()
    assert (await looks.seen())["out/a.csv"].vanished is None


async def test_two_looks_at_once_are_not_enough(looks: Make) -> None:
    watched = looks(settle_seconds=30)
    watched.places.put("out/a.csv")
    await watched.look()
    assert (await watched.look(seconds=10)).sent == 0
    assert (await watched.look(seconds=20)).sent == 1


async def test_a_marker_says_that_a_file_is_complete(looks: Make) -> None:
    watched = looks(marker=".done", path="out/*")
    watched.places.put("out/a.csv")
    watched.places.put(".docflow-x")
    await watched.look()
    assert (await watched.look()).settling == 1
    watched.places.put("out/a.csv.done")
    assert (await watched.look()).sent == 1
    assert watched.sent == ["out/a.csv"]


async def test_what_differs_in_case_alone_is_a_problem(looks: Make) -> None:
    watched = looks()
    for name in ("a.csv", "B.CSV", "c.Csv"):
        watched.places.put(f"out/{name}")
    result = await watched.look()
    assert (result.files, result.problems) == (
        1,
        (
            "'out/B.CSV' and 1 others: left out, differs from 'out/*.csv' in upper and lower case "
            "alone; `[cC]` in the path takes both, or have them renamed",
        ),
    )
    marked = looks(name="marked", marker=".done", path="in/*.csv")
    marked.places.put("in/a.csv")
    marked.places.put("in/a.csv.DONE")
    (problem,) = (await marked.look()).problems
    assert problem.startswith("'in/a.csv.DONE': left out, differs from 'in/*.csv.done'")


async def test_a_file_that_its_sender_still_writes_is_not_sent(looks: Make) -> None:
    watched = looks(path="out/*")
    watched.places.put("out/a.csv.filepart", changed=NOON)
    watched.places.put("out/b.csv", changed=NOON)
    await watched.look()
    result = await watched.look()
    assert (result.sent, result.settling, result.problems) == (1, 1, ())
    assert watched.sent == ["out/b.csv"]
    (problem,) = (await watched.look(seconds=90_000)).problems
    assert problem.startswith("'out/a.csv.filepart': no event is sent of it")
    # It got its name: nothing that was there before is missed.
    del watched.places.entries["out/a.csv.filepart"]
    watched.places.put("out/a.csv", changed=NOON)
    assert (await watched.look()).vanished == 0
    await watched.look()
    assert watched.sent == ["out/b.csv", "out/a.csv"]
    named = looks(name="named", path="out/*.filepart")
    named.places.put("out/a.csv.filepart")
    await named.look()
    assert (await named.look()).sent == 1


async def test_more_markers_than_are_looked_at_are_named(looks: Make) -> None:
    """Markers of files that were moved away stay, and hide those of new files."""
    watched = looks(marker=".done", path="out/*.csv", most=2)
    for name in ("a.csv.done", "b.csv.done", "c.csv.done", "d.csv.done", "d.csv"):
        watched.places.put(f"out/{name}")
    result = await watched.look()
    assert (result.files, result.sent, result.settling) == (1, 0, 1)
    assert "there are more than 2 markers 'out/*.csv.done'" in result.problems[0]


async def test_markers_of_another_case_hide_no_others_in_silence(looks: Make) -> None:
    watched = looks(marker=".done", path="out/*.csv", most=2)
    for name in ("a.csv.DONE", "b.csv.DONE", "c.csv.done", "c.csv"):
        watched.places.put(f"out/{name}")
    result = await watched.look()
    assert "there are more than 2 markers 'out/*.csv.done'" in result.problems[0]


async def test_thousands_of_files_are_each_sent_once(database: Database) -> None:
    watched = Looks(SqlWatchStore(database), ListedPlaces())
    for number in range(3_000):
        watched.places.put(f"out/{number:06}.csv", changed=NOON)
    assert (await watched.look()).settling == 3_000
    assert (await watched.look()).sent == 3_000
    assert len(set(watched.sent)) == 3_000
    assert await watched.look() == LookResult(files=3_000)


async def test_files_beyond_the_limit_are_named_and_nothing_vanishes(looks: Make) -> None:
    watched = looks(most=2)
    for name in "abc":
        watched.places.put(f"out/{name}.csv")
    result = await watched.look()
    assert result.files == 2 and "there are more than 2 files" in result.problems[0]
    watched.places.put("out/0.csv")
    assert (await watched.look()).vanished == 0


async def test_a_file_that_vanishes_is_noted(looks: Make) -> None:
    watched = looks()
    watched.places.put("out/sent.csv")
    await watched.look()
    await watched.look()
    watched.places.put("out/unsent.csv")
    await watched.look()
    watched.places.entries.clear()
    result = await watched.look()
    assert (result.vanished, result.vanished_unsent) == (2, ("'out/unsent.csv'",))
    assert {each.vanished for each in (await watched.seen()).values()} == {watched.now}
    assert (await watched.look()).vanished == 0
    # It comes again: it has to settle again, and is sent.
    watched.places.put("out/unsent.csv")
    assert (await watched.look()).settling == 1
    assert (await watched.look()).sent == 1
    assert await watched.store.prune("orders", watched.now) == 1


async def test_a_look_that_was_broken_off_sends_the_same_event_again(looks: Make) -> None:
    watched = looks()
    watched.places.put("out/a.csv", changed=None)
    await watched.look()
    await watched.look()
    # Its event was started, and the worker was killed before that was written down.
    (file,) = (await watched.seen()).values()
    watched.transfers.enter(watched.sender.bodies[0], TransferStatus.FAILED, watched.now)
    await watched.store.put("orders", [file.model_copy(update={"event": None})])
    await watched.look()
    first, second = watched.sender.bodies
    assert first == second


@pytest.mark.parametrize("status", [TransferStatus.FAILED, TransferStatus.SUCCEEDED])
async def test_a_file_that_is_put_back_is_sent_again_where_its_transfer_failed(
    looks: Make, status: TransferStatus
) -> None:
    watched = looks()
    watched.places.put("out/a.csv", changed=NOON)
    await watched.look()
    await watched.look()
    (body,) = watched.sender.bodies
    watched.transfers.enter(body, TransferStatus.ASSIGNED, watched.now)
    watched.transfers.enter(body, status, watched.now)
    watched.places.entries.clear()
    await watched.look()
    watched.places.put("out/a.csv", changed=NOON)
    await watched.look()
    result = await watched.look()
    if status is TransferStatus.FAILED:
        assert result.sent == 1
        first, second = (json.loads(each)["id"] for each in watched.sender.bodies)
        assert first != second
    else:
        assert result.sent == 0
        assert "the same file was sent before" in result.problems[0]
        assert (await watched.seen())["out/a.csv"].problem
    assert (await watched.look()).problems == ()


async def test_a_share_that_is_empty_for_one_look_starts_nothing_and_asks_nobody(
    looks: Make,
) -> None:
    watched = looks()
    for name in "ab":
        watched.places.put(f"out/{name}.csv", changed=NOON)
    await watched.look()
    await watched.look()
    watched.places.put("out/late.csv", changed=NOON)
    await watched.look(seconds=10)
    for body in watched.sender.bodies:
        watched.transfers.enter(body, TransferStatus.SUCCEEDED, watched.now)
    mounted = dict(watched.places.entries)
    watched.places.entries.clear()
    assert (await watched.look()).vanished == 3
    watched.places.entries.update(mounted)
    result = await watched.look()
    # What was not complete before is sent now.
    assert (result.returned, result.sent, result.problems) == (3, 1, ())
    assert watched.sent == ["out/a.csv", "out/b.csv", "out/late.csv"]
    seen = await watched.seen()
    assert [each.vanished for each in seen.values()] == [None] * 3
    assert all(each.event and each.problem is None for each in seen.values())
    assert await watched.look() == LookResult(files=3)


async def test_a_share_that_was_empty_for_long_is_named_once(looks: Make) -> None:
    watched = looks()
    for name in "ab":
        watched.places.put(f"out/{name}.csv", changed=NOON)
    await watched.look()
    await watched.look()
    first, second = watched.sender.bodies
    watched.transfers.enter(first, TransferStatus.SUCCEEDED, watched.now)
    watched.transfers.enter(second, TransferStatus.FAILED, watched.now)
    mounted = dict(watched.places.entries)
    watched.places.entries.clear()
    emptied = (await watched.look(), watched.now)[1]
    await watched.look()
    watched.places.entries.update(mounted)
    result = await watched.look()
    assert (result.returned, result.sent, len(watched.sender.bodies)) == (2, 0, 2)
    assert result.problems == (
        f"2 files that were all gone at {emptied:%Y-%m-%d %H:%M} UTC are back as they were: they "
        "count as the same files, and none is sent again, also the 1 whose transfers have failed; "
        "change the time of one (`touch`) to have it sent again",
    )
    assert await watched.look() == LookResult(files=2)


async def test_some_of_the_files_that_had_all_gone_were_put_back_by_a_person(looks: Make) -> None:
    watched = looks()
    for name in "ab":
        watched.places.put(f"out/{name}.csv", changed=NOON)
    await watched.look()
    await watched.look()
    for body in watched.sender.bodies:
        watched.transfers.enter(body, TransferStatus.FAILED, watched.now)
    watched.places.entries.clear()
    await watched.look()
    watched.places.put("out/a.csv", changed=NOON)
    await watched.look()
    result = await watched.look()
    assert (result.returned, result.sent) == (0, 1)
    assert watched.sent[2:] == ["out/a.csv"]


async def test_an_event_that_is_refused_is_a_problem_once(looks: Make) -> None:
    watched = looks()
    watched.sender.refused = "another event has its id"
    watched.places.put("out/a.csv")
    await watched.look()
    result = await watched.look()
    assert "another event has its id" in result.problems[0]
    assert (await watched.look()).problems == ()
    assert (await watched.seen())["out/a.csv"].problem == "another event has its id"


async def test_a_partner_that_is_unavailable_is_waited_for(looks: Make) -> None:
    watched = looks()
    watched.places.is_away = True
    with pytest.raises(ApplicationError) as failed:
        await watched.look()
    assert failed.value.type == UNAVAILABLE and "acme" in failed.value.details


async def test_a_partner_that_is_not_there_fails_the_look(looks: Make) -> None:
    watched = looks(partner="nobody")
    with pytest.raises(ApplicationError, match="no partner nobody") as failed:
        await watched.look()
    assert failed.value.type == PERMANENT
    ports = WatchPorts(
        watched.places, MemoryPartners(), watched.store, watched.sender, watched.transfers
    )
    note = LookFailure(watch="orders", problem="there is no partner nobody")
    await ActivityEnvironment().run(Watching(ports).note_look, note)
    state = await watched.store.state("orders")
    assert state is not None and state.problem == note.problem and state.looked is None
