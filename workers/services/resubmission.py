"""Messages that a bridge has rejected, sent to its queue again."""

from collections.abc import Mapping
from typing import Protocol

from workers import catalogue
from workers.pipelines.base import Resubmission, load
from workers.services.errors import InvalidRequest


class QueueSender(Protocol):
    """Validates messages of one queue, and sends them to it."""

    def check(self, body: bytes) -> None:
        """Check a message as its bridge does.

        Raises:
            RefusedMessage: The bridge would reject it.
        """
        ...

    async def send(self, environment: Mapping[str, str], body: bytes, message_id: str) -> None:
        """Send a message; it is in the queue when this returns.

        Raises:
            SettingsError: A setting is missing or wrong.
            ServiceError: It cannot be sent, or it is not known whether it was.
        """
        ...


def sender_of(queue: str, environment: Mapping[str, str]) -> QueueSender:
    """What sends messages to the queue that a rejected message came from.

    Raises:
        InvalidRequest: There is none; the message says what to do.
    """
    known = [
        bridge.resubmission
        for pipeline in catalogue.PIPELINES
        for bridge in pipeline.bridges
        if bridge.resubmission is not None
    ]
    for each in known:
        if each.queue(environment) != queue:
            continue
        if each.sender is None:
            raise InvalidRequest(f"docflow sends no messages to queue {queue!r}: {each.instead}")
        return load(each.sender)
    settings = "; ".join(_named(each, environment) for each in known)
    raise InvalidRequest(
        f"no setting names queue {queue!r}, so its messages cannot be sent again: set the one of "
        f"its bridge ({settings})"
    )


def _named(each: Resubmission, environment: Mapping[str, str]) -> str:
    queue = each.queue(environment)
    return f"{each.setting} is {'not set' if queue is None else repr(queue)}"
