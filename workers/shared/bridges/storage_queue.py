"""Azure Storage Queue -> handler: polls, visibility timeouts as leases, a queue of dead letters."""

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from azure.storage.queue import QueueMessage
from azure.storage.queue.aio import QueueClient

from workers.shared.bridges.transport import (
    LeaseLost,
    NotDeadLettered,
    QueueMissing,
    QueueRefused,
    TransportError,
)
from workers.shared.services.bodies import DeadLetter

RECEIVED_AT_ONCE: Final = 32
"""Messages that one receive brings at most."""
POISON: Final = "-poison"
"""What the name of a queue of dead letters ends with."""
LONGEST_HOLD: Final = 6 * 24 * 3600
"""Seconds in flight; a message may stay hidden for seven days in all."""
_GONE: Final = frozenset({"MessageNotFound", "PopReceiptMismatch"})


class Encoding(StrEnum):
    """How senders write bodies."""

    AUTO = "auto"
    """By each body: JSON as it is, else base64 where it holds JSON."""
    BASE64 = "base64"
    PLAIN = "plain"


@dataclass(slots=True)
class StoredMessage:
    """A message in flight."""

    text: str
    """As it lies in the queue."""
    body: bytes
    message_id: str
    receives: int
    """Including this one."""
    receipt: str = field(repr=False)
    """Changes with every extension."""
    is_dead_lettered: bool = False
    """It is among the dead letters, and has only to be deleted."""

    @property
    def delivery_count(self) -> int:
        """Receives before this one."""
        return self.receives - 1


class StorageQueueTransport:
    """A storage queue as the consumer needs it.

    Dead letters go to a queue of the same name with `-poison` at its end, each as it came; it is
    made when it is needed.

    Args:
        queue: Client of the queue; this transport closes it.
        poison: Client of the queue of its dead letters; this transport closes it too.
        visibility_timeout: Seconds that a message in flight stays hidden; extended while it is.
        poll: Seconds between two looks at a queue that was empty.
        encoding: How senders write bodies.
    """

    def __init__(
        self,
        queue: QueueClient,
        poison: QueueClient,
        *,
        visibility_timeout: int = 60,
        poll: float = 1.0,
        encoding: Encoding = Encoding.AUTO,
    ) -> None:
        self.name = queue.queue_name
        self._queue = queue
        self._poison = poison
        self._visibility_timeout = visibility_timeout
        self._poll = poll
        self._encoding = encoding

    async def receive(self, most: int, wait: float) -> Sequence[StoredMessage]:
        """Receive messages; an empty queue is looked at again until `wait` is over."""
        clock = asyncio.get_running_loop().time
        until = clock() + wait
        while True:
            found = await self._receive(min(most, RECEIVED_AT_ONCE))
            left = until - clock()
            if found or left <= 0:
                return found
            await asyncio.sleep(min(self._poll, left))

    def lease_seconds(self, message: StoredMessage) -> float:
        """The visibility timeout that every receive and extension sets."""
        return self._visibility_timeout

    async def extend(self, message: StoredMessage) -> None:
        """Hide a message for another visibility timeout."""
        await self._hide(message, self._visibility_timeout)

    async def complete(self, message: StoredMessage) -> None:
        """Delete a message."""
        async with self._settling():
            await self._queue.delete_message(message.message_id, message.receipt)

    async def abandon(self, message: StoredMessage, delay: int) -> None:
        """Make a message visible again after a delay."""
        await self._hide(message, delay)

    async def dead_letter(self, message: StoredMessage, verdict: DeadLetter) -> None:
        """Write a dead letter, then delete the message.

        A queue has no room for a reason: it stands in the record of rejected messages.
        """
        if not message.is_dead_lettered:
            try:
                await self._set_aside(message.text)
            except AzureError as error:
                raise NotDeadLettered(
                    f"cannot write into {self._poison.queue_name}: {_reason(error)}"
                ) from error
            message.is_dead_lettered = True
        await self.complete(message)

    async def close(self) -> None:
        """Close the connections."""
        await self._queue.close()
        await self._poison.close()

    async def _receive(self, most: int) -> Sequence[StoredMessage]:
        try:
            pages = self._queue.receive_messages(
                messages_per_page=most,
                max_messages=most,
                visibility_timeout=self._visibility_timeout,
            )
            return [_received(each, self._encoding) async for each in pages]
        except ResourceNotFoundError as error:
            raise QueueMissing(f"there is no queue {self.name}; {_CHECK}") from error
        except ClientAuthenticationError as error:
            raise QueueRefused(f"{self.name} refuses access; {_CHECK}") from error
        except HttpResponseError as error:
            if error.status_code in (401, 403):
                raise QueueRefused(f"{self.name} refuses access; {_CHECK}") from error
            raise TransportError(f"cannot receive from {self.name}: {_reason(error)}") from error
        except AzureError as error:
            raise TransportError(f"cannot receive from {self.name}: {_reason(error)}") from error

    async def _hide(self, message: StoredMessage, seconds: int) -> None:
        async with self._settling():
            updated = await self._queue.update_message(
                message.message_id, message.receipt, visibility_timeout=seconds
            )
            message.receipt = updated.pop_receipt or message.receipt

    async def _set_aside(self, text: str) -> None:
        # A dead letter waits for a person, not for seven days.
        try:
            await self._poison.send_message(text, time_to_live=-1)
        except ResourceNotFoundError:
            # Several may find it missing at a time.
            with suppress(ResourceExistsError):
                await self._poison.create_queue()
            await self._poison.send_message(text, time_to_live=-1)

    @asynccontextmanager
    async def _settling(self) -> AsyncGenerator[None]:
        try:
            yield
        except HttpResponseError as error:
            code: Any = getattr(error, "error_code", None)
            text = f"{self.name}: {_reason(error)}"
            if code in _GONE:
                raise LeaseLost(text) from error
            raise TransportError(text) from error
        except AzureError as error:
            raise TransportError(f"{self.name}: {_reason(error)}") from error


_CHECK: Final = (
    "check the connection string, or URL and SAS token or the rights of this process at Entra ID, "
    "and the name of the queue"
)


def body_of(text: str, encoding: Encoding) -> bytes:
    """The body that a sender meant.

    Args:
        text: As it lies in the queue.
        encoding: How senders write bodies; what is not base64 although it should be stays as it
            is, so that the record of rejected messages shows it.
    """
    plain = text.encode("utf-8", "surrogatepass")
    if encoding is Encoding.PLAIN or (encoding is Encoding.AUTO and _is_json(plain)):
        return plain
    try:
        decoded = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return plain
    if encoding is Encoding.AUTO and not _is_json(decoded):
        return plain
    return decoded


def _is_json(body: bytes) -> bool:
    """Whether it begins as a JSON object or list does; a mark of UTF-8 may stand before it."""
    return body.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")


def _received(message: QueueMessage, encoding: Encoding) -> StoredMessage:
    text = str(message.content)
    return StoredMessage(
        text=text,
        body=body_of(text, encoding),
        message_id=message.id,
        receives=message.dequeue_count or 1,
        receipt=message.pop_receipt or "",
    )


def _reason(error: AzureError) -> str:
    """What happened, without addresses: they may hold a signature."""
    if isinstance(error, HttpResponseError):
        code: Any = getattr(error, "error_code", None)
        return f"{error.status_code} {code or ''}".strip()
    return type(error).__name__
