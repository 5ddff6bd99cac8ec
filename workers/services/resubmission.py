"""Messages that a bridge has rejected, sent to its queue again."""

from collections.abc import Mapping
from typing import Protocol

from adapters.ports import RejectedMessage
from workers import catalogue
from workers.pipelines.base import Resubmission, load
from workers.services.bodies import RefusedMessage
from workers.services.errors import InvalidRequest
from workers.services.verdicts import KEY_REUSED


class QueueSender(Protocol):
    """Validates messages of one queue, and sends them to it."""

    def check(self, body: bytes) -> None:
        """Check a message as its bridge does.

        Raises:
            RefusedMessage: The bridge would reject it.
        """
        ...

    def key(self, body: bytes) -> str:
        """The workflow id of the run that a message starts.

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
        if not _is_of(each, queue, environment):
            continue
        if each.sender is None:
            raise InvalidRequest(f"docflow sends no messages to queue {queue!r}: {each.instead}")
        return load(each.sender)
    settings = "; ".join(_named(each, environment) for each in known)
    raise InvalidRequest(
        f"no setting names queue {queue!r}, so its messages cannot be sent again: set the one of "
        f"its bridge ({settings})"
    )


def reused_key(sender: QueueSender, message: RejectedMessage, body: bytes) -> str | None:
    """The workflow id that a message, rejected because another has it, would come under again.

    Args:
        sender: Of its queue.
        message: As it was rejected.
        body: To be sent now.

    Returns:
        None: it was rejected for another reason, or comes under another id.

    Raises:
        RefusedMessage: The bridge would reject the body.
    """
    if message.reason != KEY_REUSED:
        return None
    key = sender.key(body)
    try:
        same = message.truncated or sender.key(message.body.encode()) == key
    except RefusedMessage:
        return None
    return key if same else None


def _is_of(each: Resubmission, queue: str, environment: Mapping[str, str]) -> bool:
    if each.owns is not None:
        return each.owns(environment, queue)
    return each.queue(environment) == queue


def _named(each: Resubmission, environment: Mapping[str, str]) -> str:
    queue = each.queue(environment)
    return f"{each.setting} is {'not set' if queue is None else repr(queue)}"
