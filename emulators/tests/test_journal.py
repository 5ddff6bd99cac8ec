"""What a queue has accepted is there after a crash, as it was."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from emulators.service_bus.broker import REASON, MessageQueue
from emulators.service_bus.codec import Described, Symbol, Timestamp, UInt, ULong, encode
from emulators.service_bus.journal import FileJournal
from emulators.service_bus.message import Content, parse
from emulators.service_bus.queued_message import QueuedMessage
from emulators.service_bus.settings import QueueSettings

START = 1_700_000_000.0
SETTINGS = QueueSettings("orders", lock_seconds=30, max_delivery_count=3)


@dataclass
class Crashing:
    """A queue that can be opened again while the one before still holds the file, as a killed
    process leaves it."""

    file: Path
    opened: ExitStack
    now: float = START
    journal: FileJournal = field(init=False)

    def queue(self) -> MessageQueue:
        self.journal = self.opened.enter_context(closing(FileJournal(self.file)))
        dead_letters = MessageQueue(SETTINGS, lambda: self.now, journal=self.journal)
        return MessageQueue(SETTINGS, lambda: self.now, dead_letters, self.journal)


@pytest.fixture
def crashing(tmp_path: Path) -> Iterator[Crashing]:
    with ExitStack() as opened:
        yield Crashing(tmp_path / "messages.db", opened)


def section(code: int, value: object) -> bytes:
    return encode(Described(ULong(code), value))


def content(name: bytes, *, ttl: int | None = None, at: float | None = None) -> Content:
    head = section(0x70, [True, None, None if ttl is None else UInt(ttl)])
    annotations: dict[Symbol, object] = {Symbol("x-mine"): 1}
    if at is not None:
        annotations[Symbol("x-opt-scheduled-enqueue-time")] = Timestamp(at * 1000)
    head += section(0x72, annotations) + section(0x73, [name]) + section(0x74, {"name": name})
    return parse(head + section(0x75, name) + section(0x78, {}))


def lock(queue: MessageQueue) -> QueuedMessage:
    message = queue.lock_next()
    assert message is not None
    assert message.lock_token is not None
    return message


def settle(queue: MessageQueue, name: str, *arguments: object) -> QueuedMessage:
    message = lock(queue)
    getattr(queue, name)(message.lock_token, *arguments)
    return message


def seen(queue: MessageQueue) -> list[bytes]:
    """All messages as receivers see them, with what the broker adds."""
    assert queue.dead_letters is not None
    return [
        message.encode() for each in (queue, queue.dead_letters) for message in each.peek(0, 99)
    ]


def test_messages_of_every_state_are_there_after_a_crash(crashing: Crashing) -> None:
    queue = crashing.queue()
    queue.send_all([content(b"%d" % number) for number in range(6)])
    queue.send(content(b"expires", ttl=60_000))
    queue.send(content(b"scheduled", at=START + 20))
    settle(queue, "complete")
    settle(queue, "dead_letter", {REASON: "bad"})
    deferred = settle(queue, "defer")
    settle(queue, "abandon")
    queue.release(lock(queue).lock_token)
    before = seen(queue)
    assert len(before) == 7

    again = crashing.queue()
    assert seen(again) == before
    assert again.counts() == queue.counts()
    assert lock(again).delivery_count == 1
    assert again.lock_deferred([deferred.sequence_number])[0].content == deferred.content


def test_a_message_that_was_locked_is_delivered_again(crashing: Crashing) -> None:
    queue = crashing.queue()
    queue.send(content(b"one"))
    held = lock(queue)
    again = lock(crashing.queue())
    assert (again.content, again.delivery_count) == (held.content, 0)
    assert again.lock_token != held.lock_token


def test_time_continues_after_a_crash(crashing: Crashing) -> None:
    queue = crashing.queue()
    queue.send(content(b"expires", ttl=10_000))
    queue.send(content(b"scheduled", at=START + 20))
    crashing.now += 30
    again = crashing.queue()
    message = lock(again)
    assert (message.sequence_number, message.enqueued_at) == (3, START + 30)
    assert again.counts().active == again.counts().scheduled == 0
    assert len(seen(crashing.queue())) == 1


def test_numbers_are_not_given_twice(crashing: Crashing) -> None:
    queue = crashing.queue()
    queue.send(content(b"one"))
    settle(queue, "complete")
    assert crashing.queue().send(content(b"two")).sequence_number == 2


def test_a_batch_is_stored_whole_or_not_at_all(crashing: Crashing) -> None:
    queue = crashing.queue()
    with pytest.raises(ZeroDivisionError), crashing.journal.together():
        queue.send_all([content(b"one"), content(b"two")])
        raise ZeroDivisionError
    assert seen(crashing.queue()) == []


def test_a_file_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "messages.db").write_text("years of work" * 100)
    with pytest.raises(sqlite3.DatabaseError, match="not a database"):
        FileJournal(tmp_path / "messages.db")
