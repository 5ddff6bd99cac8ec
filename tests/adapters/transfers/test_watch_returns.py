"""Files of a watch that had all gone at once, and are back."""

from tests.support.transfers.looks import NOON, Make
from workflows.transfers.events import TransferStatus
from workflows.transfers.watches import PollWatchResult


async def test_a_share_that_is_empty_once_starts_nothing_and_notifies_no_one(
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
    assert await watched.look() == PollWatchResult(files=3)


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
    assert await watched.look() == PollWatchResult(files=2)


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


async def test_a_share_that_was_unmounted_for_one_look_loses_no_file_that_was_not_sent(
    looks: Make,
) -> None:
    watched = looks()
    watched.places.put("out/new.csv", changed=NOON)
    await watched.look()
    mounted = dict(watched.places.entries)
    watched.places.entries.clear()
    result = await watched.look(seconds=10)
    assert (result.vanished, result.vanished_unsent, result.problems) == (1, (), ())
    watched.places.entries.update(mounted)
    result = await watched.look(seconds=10)
    assert (result.vanished_unsent, result.problems) == ((), ())
    await watched.look()
    assert watched.sent == ["out/new.csv"]


async def test_files_that_a_second_look_does_not_find_either_are_named_once(looks: Make) -> None:
    watched = looks()
    watched.places.put("out/new.csv", changed=NOON)
    await watched.look()
    watched.places.entries.clear()
    emptied = (await watched.look(seconds=10), watched.now)[1]
    result = await watched.look(seconds=10)
    assert result.vanished_unsent == ()
    assert result.problems == (
        f"nothing is at 'out/*.csv' since {emptied:%Y-%m-%d %H:%M} UTC, and these files were not "
        "sent before: 'out/new.csv'; if it is a share, see that it is mounted: they are sent once "
        "they are back",
    )
    assert (await watched.look(seconds=10)).problems == ()


async def test_one_of_the_files_that_had_all_gone_does_not_come_back(looks: Make) -> None:
    watched = looks()
    for name in ("kept", "lost"):
        watched.places.put(f"out/{name}.csv", changed=NOON)
    await watched.look()
    watched.places.entries.clear()
    await watched.look(seconds=10)
    watched.places.put("out/kept.csv", changed=NOON)
    result = await watched.look(seconds=10)
    assert (result.vanished_unsent, result.problems) == (("'out/lost.csv'",), ())
