"""The rules of a queue: order, locks, delivery counts, dead letters, schedules.

Nothing here knows AMQP or asyncio, and the journal alone knows a file. Time comes from the clock
that is handed in, in seconds since 1970; a caller asks `next_deadline` when to call `advance`, and
is notified by `on_ready` whenever there may be something to deliver. Names and rules are those of
Azure Service Bus queues.
"""

import heapq
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count, islice
from typing import Final

from emulators.service_bus.journal import Journal
from emulators.service_bus.message import Content
from emulators.service_bus.queued_message import QueuedMessage, State
from emulators.service_bus.settings import QueueCounts, QueueSettings

DEAD_LETTER_SUFFIX: Final = "/$DeadLetterQueue"
REASON: Final = "DeadLetterReason"
DESCRIPTION: Final = "DeadLetterErrorDescription"


class BrokerError(Exception):
    """The queue refuses.

    Attributes:
        condition: The error condition that clients know.
    """

    condition = "amqp:internal-error"


class LockLost(BrokerError):
    """The lock has expired or was never given."""

    condition = "com.microsoft:message-lock-lost"


class MessageNotFound(BrokerError):
    """There is no message with this sequence number in the state that is asked for."""

    condition = "com.microsoft:message-not-found"


class NotAllowed(BrokerError):
    """The queue cannot do this."""

    condition = "amqp:not-allowed"


class MessageQueue:
    """One queue or dead-letter queue.

    Args:
        settings: Its rules.
        clock: Seconds since 1970.
        dead_letters: Where its dead letters go; None for a dead-letter queue.
        journal: Where it finds its messages and writes them down; None: they live in memory.

    Attributes:
        on_ready: Called whenever a message becomes active.
    """

    def __init__(
        self,
        settings: QueueSettings,
        clock: Callable[[], float],
        dead_letters: "MessageQueue | None" = None,
        journal: Journal | None = None,
    ) -> None:
        self.settings = settings
        self.dead_letters = dead_letters
        self.name = settings.name if dead_letters else settings.name + DEAD_LETTER_SUFFIX
        self.on_ready: Callable[[], None] = lambda: None
        self._clock = clock
        self._journal = journal or Journal()
        self._key = self.name.casefold()
        self._numbers = count(self._journal.last_number(self._key) + 1)
        self._messages: dict[int, QueuedMessage] = {}
        """By sequence number, and so in the order of arrival."""
        self._active: list[int] = []
        self._locks: dict[uuid.UUID, QueuedMessage] = {}
        self._deadlines: list[tuple[float, int]] = []
        for message in self._journal.messages(self._key):
            self._messages[message.sequence_number] = message
            if message.state is State.ACTIVE:
                heapq.heappush(self._active, message.sequence_number)
            self._watch(message)

    def send_all(self, contents: Sequence[Content]) -> None:
        """Store messages; all of them or none."""
        with self._journal.together():
            for content in contents:
                self.send(content)

    def send(self, content: Content) -> QueuedMessage:
        """Store a message, at once or for the moment that its sender asks for."""
        now = self._clock()
        if content.scheduled_for is not None and content.scheduled_for > now:
            return self._schedule(content, content.scheduled_for)
        return self._enqueue(content, now)

    def cancel(self, sequence_numbers: Sequence[int]) -> None:
        """Remove scheduled messages; all of them or none.

        Raises:
            MessageNotFound: One is not scheduled, or not any more.
        """
        self.advance()
        for message in self._in_state(sequence_numbers, State.SCHEDULED):
            self._remove(message)

    def lock_next(self) -> QueuedMessage | None:
        """Give the oldest active message to a receiver, under a new lock."""
        message = self._next_active()
        if message is not None:
            self._lock(message)
        return message

    def take_next(self) -> QueuedMessage | None:
        """Deliver the oldest active message without a lock."""
        message = self._next_active()
        if message is not None:
            self._remove(message)
        return message

    def lock_deferred(self, sequence_numbers: Sequence[int]) -> list[QueuedMessage]:
        """Give deferred messages to a receiver, under new locks; all of them or none.

        Raises:
            MessageNotFound: One is not deferred.
        """
        self.advance()
        messages = self._in_state(sequence_numbers, State.DEFERRED)
        for message in messages:
            self._lock(message)
        return messages

    def take_deferred(self, sequence_numbers: Sequence[int]) -> list[QueuedMessage]:
        """Deliver deferred messages without a lock; all of them or none.

        Raises:
            MessageNotFound: One is not deferred.
        """
        self.advance()
        messages = self._in_state(sequence_numbers, State.DEFERRED)
        for message in messages:
            self._remove(message)
        return messages

    def peek(self, from_sequence_number: int, limit: int) -> list[QueuedMessage]:
        """Messages in any state, oldest first; none is delivered by this."""
        self.advance()
        found = (m for m in self._messages.values() if m.sequence_number >= from_sequence_number)
        return list(islice(found, limit))

    def complete(self, token: uuid.UUID) -> None:
        """Remove a message that was dealt with.

        Raises:
            LockLost: The lock is gone, and another receiver may have the message.
        """
        self._remove(self._locked(token))

    def abandon(self, token: uuid.UUID) -> None:
        """Give a message back as a failed delivery.

        Raises:
            LockLost: The lock is gone.
        """
        self._fail(self._locked(token))

    def release(self, token: uuid.UUID) -> None:
        """Give an unprocessed message back; this is not a failed delivery.

        Raises:
            LockLost: The lock is gone.
        """
        self._unlock(self._locked(token))

    def defer(self, token: uuid.UUID) -> None:
        """Defer a message until it is requested by its sequence number.

        Raises:
            LockLost: The lock is gone.
        """
        message = self._locked(token)
        message.deferred = True
        self._unlock(message)

    def dead_letter(self, token: uuid.UUID, extra: dict[str, str]) -> None:
        """Move a message to the dead-letter queue.

        Args:
            token: The lock.
            extra: Application properties to add, such as reason and description.

        Raises:
            LockLost: The lock is gone.
            NotAllowed: This is a dead-letter queue already.
        """
        self._bury(self._locked(token), extra)

    def renew(self, token: uuid.UUID) -> float:
        """Extend a lock by the queue's lock time from now.

        Returns:
            When it expires.

        Raises:
            LockLost: The lock is gone.
        """
        message = self._locked(token)
        message.locked_until = self._clock() + self.settings.lock_seconds
        self._watch(message)
        return message.locked_until

    def advance(self) -> None:
        """Do what time has brought about: end locks, enqueue what was scheduled, expire."""
        now = self._clock()
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, number = heapq.heappop(self._deadlines)
            message = self._messages[number]
            if message.state is State.LOCKED:
                self._fail(message)
            elif message.state is State.SCHEDULED:
                with self._journal.together():
                    self._remove(message)
                    self._enqueue(message.content, now)
            else:
                self._remove(message)

    def next_deadline(self) -> float | None:
        """When `advance` will next have something to do."""
        while self._deadlines:
            when, number = self._deadlines[0]
            message = self._messages.get(number)
            if message is not None and message.deadline == when:
                return when
            heapq.heappop(self._deadlines)
        return None

    def counts(self) -> QueueCounts:
        """How many messages there are, by state."""
        self.advance()
        states = Counter(message.state for message in self._messages.values())
        return QueueCounts(
            active=states[State.ACTIVE],
            locked=states[State.LOCKED],
            scheduled=states[State.SCHEDULED],
            deferred=states[State.DEFERRED],
            dead_letter=len(self.dead_letters._messages) if self.dead_letters else 0,
        )

    def _enqueue(self, content: Content, now: float) -> QueuedMessage:
        message = self._add(content, now)
        if content.time_to_live is not None and self.dead_letters is not None:
            message.expires_at = now + content.time_to_live
            self._watch(message)
        self._journal.save(self._key, message)
        self._activate(message)
        return message

    def _schedule(self, content: Content, moment: float) -> QueuedMessage:
        message = self._add(content, self._clock())
        message.state = State.SCHEDULED
        message.scheduled_for = moment
        self._journal.save(self._key, message)
        self._watch(message)
        return message

    def _add(self, content: Content, now: float) -> QueuedMessage:
        number = next(self._numbers)
        message = QueuedMessage(content, number, now, number)
        self._messages[number] = message
        return message

    def _remove(self, message: QueuedMessage) -> None:
        self._journal.remove(self._key, message)
        del self._messages[message.sequence_number]
        if message.lock_token is not None:
            del self._locks[message.lock_token]
            message.lock_token = None

    def _activate(self, message: QueuedMessage) -> None:
        message.state = State.ACTIVE
        heapq.heappush(self._active, message.sequence_number)
        self.on_ready()

    def _next_active(self) -> QueuedMessage | None:
        self.advance()
        while self._active:
            message = self._messages.get(heapq.heappop(self._active))
            if message is not None:
                return message
        return None

    def _in_state(self, sequence_numbers: Sequence[int], state: State) -> list[QueuedMessage]:
        messages = [self._messages.get(number) for number in dict.fromkeys(sequence_numbers)]
        found = [message for message in messages if message and message.state is state]
        if len(found) < len(messages):
            raise MessageNotFound(
                f"not every one of these sequence numbers is that of a {state.name.lower()} message"
            )
        return found

    def _lock(self, message: QueuedMessage) -> None:
        token = uuid.uuid4()
        message.state = State.LOCKED
        message.lock_token = token
        message.locked_until = self._clock() + self.settings.lock_seconds
        self._locks[token] = message
        self._watch(message)

    def _locked(self, token: uuid.UUID) -> QueuedMessage:
        self.advance()
        message = self._locks.get(token)
        if message is None:
            raise LockLost(
                "The lock is gone: it has expired, or the message was settled; receive it again."
            )
        return message

    def _unlock(self, message: QueuedMessage) -> None:
        assert message.lock_token is not None
        del self._locks[message.lock_token]
        message.lock_token = None
        self._journal.save(self._key, message)
        if message.deferred:
            message.state = State.DEFERRED
        else:
            self._activate(message)
        self._watch(message)

    def _fail(self, message: QueuedMessage) -> None:
        message.delivery_count += 1
        limit = self.settings.max_delivery_count
        if self.dead_letters is None or message.delivery_count < limit:
            self._unlock(message)
            return
        description = f"Message could not be consumed after {limit} delivery attempts."
        self._bury(message, {REASON: "MaxDeliveryCountExceeded", DESCRIPTION: description})

    def _bury(self, message: QueuedMessage, extra: dict[str, str]) -> None:
        if self.dead_letters is None:
            raise NotAllowed("A message of a dead-letter queue cannot be dead-lettered again.")
        content = message.content.with_application_properties(extra) if extra else message.content
        with self._journal.together():
            self._remove(message)
            self.dead_letters.receive_dead_letter(message, content, self.settings.name)

    def receive_dead_letter(self, message: QueuedMessage, content: Content, source: str) -> None:
        """Take over a message from the queue whose dead-letter queue this is."""
        buried = self._add(content, message.enqueued_at)
        buried.enqueue_sequence_number = message.enqueue_sequence_number
        buried.delivery_count = message.delivery_count
        buried.dead_letter_source = source
        self._journal.save(self._key, buried)
        self._activate(buried)

    def _watch(self, message: QueuedMessage) -> None:
        if message.deadline is not None:
            heapq.heappush(self._deadlines, (message.deadline, message.sequence_number))
