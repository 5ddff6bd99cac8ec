"""Looks of watches over real tables: a local folder, and an endpoint in memory."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.transfers.cloud_events import read_event
from activities.transfers.watches import Watching, WatchPollDeps
from adapters.database.engine import Database
from tests.support.memory.partners import MemoryPartners
from tests.support.transfers.listed_place import ListedPlaces
from tests.support.transfers.looks import NOON, Looks, Make
from tests.support.transfers.places import open_places
from workflows.shared.errors import PERMANENT, UNAVAILABLE
from workflows.transfers.events import TransferStatus, transfer_id_of
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.runs import file_job_id
from workflows.transfers.watches import PollFailure, PollWatchResult, event_id


async def test_a_file_is_sent_once_when_two_looks_agree(database: Database, tmp_path: Path) -> None:
    partner = Partner(name="acme", kind=PlaceKind.FOLDER, container=str(tmp_path))
    places = open_places(folders=[tmp_path])
    looks = Looks(database, places, partner=partner)
    file = tmp_path / "out" / "a.csv"
    file.parent.mkdir()
    file.write_bytes(b"1,2\n")
    assert (await looks.look()).settling == 1
    with file.open("ab") as more:
        more.write(b"3,4\n")
    assert (await looks.look()).settling == 1 and looks.sent == []
    assert (await looks.look()).sent == 1
    assert await looks.look() == PollWatchResult(files=1)
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


async def test_files_of_one_look_are_sent_in_the_order_of_their_times(looks: Make) -> None:
    watched = looks()
    names = [f"out/{hour}.csv" for hour in range(24)]
    for hours, name in enumerate(reversed(names)):
        watched.places.put(name, changed=NOON + timedelta(hours=hours // 2))
    await watched.look()
    assert (await watched.look()).sent == len(names)
    pairs = [names[at : at + 2] for at in range(0, len(names), 2)]
    assert watched.sent == [name for pair in reversed(pairs) for name in pair]


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
    looks = Looks(database, open_places(folders=[tmp_path]), partner=partner)
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
            "alone; `[cC]` or `*` in the path takes both, or have them renamed",
        ),
    )
    marked = looks(name="marked", marker=".done", path="in/*.csv")
    marked.places.put("in/a.csv")
    marked.places.put("in/a.csv.DONE")
    (problem,) = (await marked.look()).problems
    assert problem.startswith("'in/a.csv.DONE': left out, differs from 'in/*.csv.done'")


@pytest.mark.parametrize("path", ["out/Mü*.csv", "out/Mu\u0308*.csv", "out/Müller.csv"], ids=ascii)
async def test_what_differs_in_the_encoding_of_accents_alone_is_a_problem(
    looks: Make, path: str
) -> None:
    """macOS decomposes accents, most others compose them: both look the same."""
    watched = looks(path=path)
    is_composed = "ü" in path
    other = "out/Mu\u0308ller.csv" if is_composed else "out/Müller.csv"
    watched.places.put(other)
    watched.places.put("out/Muller.csv")
    (problem,) = (await watched.look()).problems
    assert problem.startswith(f"{other!a}: left out, differs from {path!a} in how accents")
    assert (await watched.look()).sent == 0


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
    watched = Looks(database, ListedPlaces())
    for number in range(3_000):
        watched.places.put(f"out/{number:06}.csv", changed=NOON)
    assert (await watched.look()).settling == 3_000
    assert (await watched.look()).sent == 3_000
    assert len(set(watched.sent)) == 3_000
    assert await watched.look() == PollWatchResult(files=3_000)


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
    watched.places.put("out/stays.csv")
    await watched.look(seconds=1)
    del watched.places.entries["out/sent.csv"], watched.places.entries["out/unsent.csv"]
    result = await watched.look()
    assert (result.vanished, result.vanished_unsent) == (2, ("'out/unsent.csv'",))
    gone = {each.vanished for path, each in (await watched.seen()).items() if "sent" in path}
    assert gone == {watched.now}
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


async def test_an_event_that_is_refused_is_a_problem_once(looks: Make) -> None:
    watched = looks()
    watched.sender.refused = "another event has its id"
    watched.places.put("out/a.csv")
    await watched.look()
    result = await watched.look()
    assert "another event has its id" in result.problems[0]
    assert (await watched.look()).problems == ()
    assert (await watched.seen())["out/a.csv"].problem == "another event has its id"
    assert await watched.turns.newest("orders", None) is None


@pytest.mark.parametrize("becomes", ["sent", "gone", "changed"])
async def test_the_place_of_a_look_that_was_killed_is_kept_for_its_file_alone(
    looks: Make, becomes: str
) -> None:
    watched = looks()
    watched.places.put("out/a.csv", changed=NOON)
    await watched.look()
    (file,) = (await watched.seen()).values()
    job = file_job_id(transfer_id_of(watched.watch.source, event_id(watched.watch, file)))
    # Killed before the event was sent.
    await watched.turns.reserve("orders", None, job, watched.now)
    if becomes == "gone":
        watched.places.entries.clear()
    elif becomes == "changed":
        watched.places.put("out/a.csv", changed=NOON, size=2)
    await watched.look()
    kept = await watched.turns.newest("orders", None)
    assert (kept is not None) == (becomes == "sent") == bool(watched.sent)


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
    places = (watched.places, MemoryPartners(), watched.store)
    ports = WatchPollDeps(*places, watched.sender, watched.transfers, watched.turns)
    note = PollFailure(watch="orders", problem="there is no partner nobody")
    await ActivityEnvironment().run(Watching(ports).note_look, note)
    state = await watched.store.state("orders")
    assert state is not None and state.problem == note.problem and state.looked is None
