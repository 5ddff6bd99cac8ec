"""The rules of an emulated queue, with a clock that the test moves."""

import uuid

import pytest

from emulators.service_bus.broker import (
    DESCRIPTION,
    REASON,
    LockLost,
    MessageNotFound,
    MessageQueue,
    NotAllowed,
)
from emulators.service_bus.codec import (
    CodecError,
    Described,
    Symbol,
    Timestamp,
    UInt,
    ULong,
    decode,
    encode,
)
from emulators.service_bus.message import Content, parse, parse_batch
from emulators.service_bus.queued_message import QueuedMessage
from emulators.service_bus.settings import QueueSettings, parse_queue

START = 1_700_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> MessageQueue:
    settings = QueueSettings("orders", lock_seconds=30, max_delivery_count=3)
    return MessageQueue(settings, clock, MessageQueue(settings, clock))


def section(code: int, value: object) -> bytes:
    return encode(Described(ULong(code), value))


def content(body: bytes = b"body", *, ttl: int | None = None, at: float | None = None) -> Content:
    head = b""
    if ttl is not None:
        head += section(0x70, [None, None, UInt(ttl)])
    if at is not None:
        head += section(0x72, {Symbol("x-opt-scheduled-enqueue-time"): Timestamp(at * 1000)})
    return parse(head + section(0x75, body))


def lock(queue: MessageQueue) -> QueuedMessage:
    message = queue.lock_next()
    assert message is not None
    return message


def token(message: QueuedMessage) -> uuid.UUID:
    assert message.lock_token is not None
    return message.lock_token


def body(message: QueuedMessage) -> bytes:
    return decode(message.content.body)[0].value


def dead_letters(queue: MessageQueue) -> MessageQueue:
    assert queue.dead_letters is not None
    return queue.dead_letters


def test_messages_are_locked_in_order_and_completed(queue: MessageQueue) -> None:
    for name in (b"a", b"b", b"c"):
        queue.send(content(name))
    locked = [lock(queue) for _ in range(3)]
    assert [body(message) for message in locked] == [b"a", b"b", b"c"]
    assert [message.sequence_number for message in locked] == [1, 2, 3]
    assert queue.lock_next() is None
    assert (queue.counts().active, queue.counts().locked) == (0, 3)
    for message in locked:
        queue.complete(token(message))
    assert queue.counts().locked == 0
    assert queue.next_deadline() is None


def test_an_abandoned_message_keeps_its_place_and_counts(queue: MessageQueue) -> None:
    queue.send(content(b"first"))
    queue.send(content(b"second"))
    queue.abandon(token(lock(queue)))
    again = lock(queue)
    assert body(again) == b"first"
    assert again.delivery_count == 1


def test_a_released_message_does_not_count(queue: MessageQueue) -> None:
    queue.send(content())
    queue.release(token(lock(queue)))
    assert lock(queue).delivery_count == 0


def test_a_lock_can_be_used_once(queue: MessageQueue) -> None:
    queue.send(content())
    held = token(lock(queue))
    queue.complete(held)
    with pytest.raises(LockLost):
        queue.complete(held)


def test_an_expired_lock_is_lost_and_the_message_is_redelivered(
    queue: MessageQueue, clock: Clock
) -> None:
    queue.send(content())
    held = token(lock(queue))
    assert queue.next_deadline() == START + 30
    clock.now += 29.9
    assert queue.lock_next() is None
    clock.now += 0.1
    with pytest.raises(LockLost):
        queue.complete(held)
    again = lock(queue)
    assert again.delivery_count == 1
    assert token(again) != held


def test_renewal_counts_from_now_and_not_from_the_old_end(
    queue: MessageQueue, clock: Clock
) -> None:
    queue.send(content())
    held = token(lock(queue))
    clock.now += 20
    assert queue.renew(held) == START + 50
    clock.now += 29
    queue.complete(held)
    clock.now += 5
    with pytest.raises(LockLost):
        queue.renew(held)


def test_the_last_failed_delivery_is_dead_lettered(queue: MessageQueue, clock: Clock) -> None:
    queue.send(content(b"poison"))
    queue.abandon(token(lock(queue)))
    lock(queue)
    clock.now += 30
    assert lock(queue).delivery_count == 2
    clock.now += 30
    counts = queue.counts()
    assert (counts.active, counts.locked, counts.dead_letter) == (0, 0, 1)
    buried = lock(dead_letters(queue))
    assert body(buried) == b"poison"
    assert buried.dead_letter_source == "orders"
    properties = decode(buried.content.application_properties)[0].value
    assert properties[REASON] == "MaxDeliveryCountExceeded"
    assert "3 delivery attempts" in properties[DESCRIPTION]


def test_dead_letters_have_no_limit_and_no_dead_letters(queue: MessageQueue) -> None:
    queue.send(content())
    queue.dead_letter(token(lock(queue)), {REASON: "bad"})
    buried = dead_letters(queue)
    for _ in range(5):
        queue_token = token(lock(buried))
        buried.abandon(queue_token)
    held = token(lock(buried))
    with pytest.raises(NotAllowed):
        buried.dead_letter(held, {})
    buried.complete(held)
    assert queue.counts().dead_letter == 0


def test_a_deferred_message_is_delivered_only_on_request(queue: MessageQueue, clock: Clock) -> None:
    queue.send(content(b"later"))
    held = lock(queue)
    queue.defer(token(held))
    assert queue.lock_next() is None
    assert queue.counts().deferred == 1
    with pytest.raises(MessageNotFound):
        queue.lock_deferred([held.sequence_number, 99])
    assert queue.counts().deferred == 1
    [fetched] = queue.lock_deferred([held.sequence_number])
    assert body(fetched) == b"later"
    clock.now += 30
    assert queue.counts().deferred == 1
    [fetched] = queue.lock_deferred([held.sequence_number])
    assert fetched.delivery_count == 1
    queue.complete(token(fetched))


def test_a_scheduled_message_becomes_active_with_a_new_number(
    queue: MessageQueue, clock: Clock
) -> None:
    scheduled = queue.send(content(b"tomorrow", at=START + 20))
    queue.send(content(b"now"))
    assert queue.counts().scheduled == 1
    assert body(lock(queue)) == b"now"
    assert queue.lock_next() is None
    clock.now += 20
    message = lock(queue)
    assert body(message) == b"tomorrow"
    assert message.sequence_number == 3 != scheduled.sequence_number
    assert message.enqueued_at == START + 20


def test_cancelling_is_for_scheduled_messages_and_all_or_nothing(
    queue: MessageQueue, clock: Clock
) -> None:
    first, second = (queue.send(content(at=START + delay)) for delay in (10, 60))
    clock.now += 10
    with pytest.raises(MessageNotFound):
        queue.cancel([first.sequence_number, second.sequence_number])
    assert queue.counts().scheduled == 1
    queue.cancel([second.sequence_number])
    clock.now += 60
    assert queue.counts().active == 1


def test_an_expired_message_is_dropped_but_not_under_a_lock(
    queue: MessageQueue, clock: Clock
) -> None:
    queue.send(content(b"short", ttl=5_000))
    queue.send(content(b"long"))
    held = token(lock(queue))
    clock.now += 6
    queue.abandon(held)
    assert body(lock(queue)) == b"long"
    assert queue.counts().active == 0


def test_receive_and_delete_leaves_nothing(queue: MessageQueue) -> None:
    queue.send(content())
    message = queue.take_next()
    assert message is not None
    assert message.lock_token is None
    assert queue.take_next() is None
    assert queue.peek(1, 10) == []


def test_peeking_shows_every_state_from_a_number_on(queue: MessageQueue) -> None:
    queue.send(content(b"locked"))
    queue.send(content(b"active"))
    queue.send(content(b"scheduled", at=START + 60))
    lock(queue)
    assert [body(message) for message in queue.peek(1, 10)] == [b"locked", b"active", b"scheduled"]
    assert [body(message) for message in queue.peek(2, 1)] == [b"active"]


def test_waiting_receivers_are_notified_of_every_active_message(
    queue: MessageQueue, clock: Clock
) -> None:
    reported: list[float] = []
    queue.on_ready = lambda: reported.append(clock.now)
    queue.send(content(at=START + 5))
    assert reported == []
    clock.now += 5
    queue.advance()
    queue.abandon(token(lock(queue)))
    assert reported == [START + 5, START + 5]


def test_a_message_keeps_the_bytes_that_are_its_senders() -> None:
    properties = section(0x73, ["id-1", b"user"])
    application = section(0x74, {"text": "å", "number": 7, "flag": True})
    data = section(0x75, b"one") + section(0x75, b"two")
    sent = (
        section(0x70, [True])
        + section(0x72, {Symbol("x-opt-mine"): 5, Symbol("x-opt-sequence-number"): 99})
        + properties
        + application
        + data
    )
    received = parse(sent).encode(2, {"x-opt-sequence-number": 1})
    assert received.endswith(properties + application + data)
    header, end = decode(received)
    annotations, _ = decode(received, end)
    assert header.value == [True, None, None, None, 2]
    assert annotations.value == {"x-opt-mine": 5, "x-opt-sequence-number": 1}


def test_dead_letter_reasons_join_the_senders_properties() -> None:
    pairs = {"kept": Described(ULong(300), 1.5), REASON: "old"}
    buried = parse(section(0x74, pairs) + section(0x75, b"")).with_application_properties(
        {REASON: "new"}
    )
    assert decode(buried.application_properties)[0].value == {**pairs, REASON: "new"}


@pytest.mark.parametrize(
    "data",
    [
        section(0x75, "text"),
        section(0x74, ["no map"]) + section(0x75, b""),
        section(0x75, b"") + section(0x73, []),
        section(0x71, {}) + section(0x75, b"") + section(0x71, {}),
        encode({"a": "map"}),
    ],
)
def test_malformed_messages_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        parse(data)


def test_a_batch_is_split_into_messages() -> None:
    messages = [section(0x75, name) for name in (b"a", b"b")]
    batch = b"".join(section(0x75, message) for message in messages)
    assert [item.body for item in parse_batch(batch)] == messages
    with pytest.raises(CodecError):
        parse_batch(section(0x77, None))


def test_queues_are_described_in_words() -> None:
    assert parse_queue("import-queue:lock=30,max=4") == QueueSettings("import-queue", 30, 4)
    assert parse_queue("import-queue") == QueueSettings("import-queue")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "cannot name a queue"),
        ("a b", "cannot name a queue"),
        ("q:lock=soon", "lock=soon"),
        ("q:lock=0", "lock must be"),
        ("q:lock=nan", "lock must be"),
        ("q:max=0", "max must be"),
        ("q:size=3", "size=3"),
    ],
)
def test_misdescribed_queues_are_refused(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_queue(text)
