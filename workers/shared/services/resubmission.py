"""Messages that a bridge has rejected, sent to its queue again."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapters.ports.records import RejectedMessage, RejectedMessages
from workers import catalogue
from workers.shared.errors import SettingsError
from workers.shared.register import Pipeline, Resubmission, load
from workers.shared.services.bodies import KEY_REUSED, RefusedMessage
from workers.shared.services.errors import InvalidRequest, Refused

if TYPE_CHECKING:
    from workers.shared.services.service_bus import ServiceBusSender


@dataclass(frozen=True)
class Origin:
    """Where a rejected message came from."""

    pipeline: str
    sender: "ServiceBusSender[Any]"
    remarks: Sequence[str]
    """What is not known of other queues with the same name, for people."""


@dataclass(frozen=True)
class _Known:
    """A bridge that records rejected messages."""

    pipeline: Pipeline
    bridge: str
    resubmission: Resubmission


def origin_of(queue: str, environment: Mapping[str, str], bridge: str | None = None) -> Origin:
    """What sends messages to the queue that a rejected message came from.

    Queues of several brokers may have one name: where the settings enable more than one of them,
    a person says which it is.

    Args:
        queue: Its name, as it is recorded.
        environment: Where settings are read; wrong ones of other queues are no hindrance.
        bridge: The bridge that rejected the message; None: the only one with such a queue.

    Raises:
        InvalidRequest: There is none, or several; the message says what to do.
    """
    known = _known(bridge)
    matched: list[_Known] = []
    unclear: list[str] = []
    for each in known:
        try:
            if _is_of(each.resubmission, queue, environment):
                matched.append(each)
        except SettingsError as error:
            unclear.append(
                f"whether queue {queue!r} is one of bridge {each.bridge} is not known: {error}"
            )
    if not matched:
        settings = "; ".join(
            [*(_named(each.resubmission, environment) for each in known), *unclear]
        )
        raise InvalidRequest(
            f"no setting names queue {queue!r}, so its messages cannot be sent again: set the one "
            f"of its bridge ({settings})"
        )
    if len(matched) > 1:
        enabled = [each for each in matched if each.pipeline.available(environment)]
        if len(enabled) != 1:
            names = " and ".join(each.bridge for each in enabled or matched)
            raise InvalidRequest(
                f"bridges {names} both receive from a queue named {queue!r}: name the one that "
                "rejected the message with --bridge"
            )
        unclear += [
            f"bridge {each.bridge} has a queue {queue!r} too, and was left out: "
            f"{each.pipeline.left_out(environment)}"
            for each in matched
            if each is not enabled[0]
        ]
        matched = enabled
    [found] = matched
    if found.resubmission.sender is None:
        raise InvalidRequest(
            f"docflow sends no messages to queue {queue!r}: {found.resubmission.instead}"
        )
    return Origin(found.pipeline.name, load(found.resubmission.sender), unclear)


def _known(bridge: str | None) -> Sequence[_Known]:
    known = [
        _Known(pipeline, each.name, each.resubmission)
        for pipeline in catalogue.PIPELINES
        for each in pipeline.bridges
        if each.resubmission is not None
    ]
    if bridge is None:
        return known
    if named := [each for each in known if each.bridge == bridge]:
        return named
    names = ", ".join(each.bridge for each in known)
    raise InvalidRequest(f"no bridge {bridge!r} records rejected messages; these do: {names}")


def body_of(message: RejectedMessage, corrected: bytes | None) -> bytes:
    """What is sent instead of a message, or the message itself.

    Raises:
        InvalidRequest: Only the beginning of it was kept.
    """
    if corrected is not None:
        return corrected
    if message.truncated:
        raise InvalidRequest(
            f"only the beginning of message {message.id} was kept; give the whole of it as the body"
        )
    return message.body.encode("utf-8", "surrogatepass")


async def send_again(
    rejected: RejectedMessages,
    environment: Mapping[str, str],
    origin: Origin,
    message: RejectedMessage,
    body: bytes,
    *,
    force: bool,
) -> None:
    """Send a rejected message to its queue again, and note it.

    Args:
        rejected: Their record.
        environment: Settings of the queue.
        origin: Of the message.
        message: As it was rejected.
        body: To be sent now.
        force: Send it although it is not valid, or was sent before.

    Raises:
        Refused: It would be rejected again, or was sent before.
        QueueUnavailable: It cannot be sent, or it is not known whether it was.
        SettingsError: A setting is missing or wrong.
    """
    if not force:
        _require_use(origin.sender, message, body)
    # A new id: the queue may drop one that it has seen.
    message_id = f"resubmitted-{message.id}-{secrets.token_hex(4)}"
    await origin.sender.send(environment, body, message_id)
    await rejected.mark_resubmitted(message.id)


def _require_use(sender: "ServiceBusSender[Any]", message: RejectedMessage, body: bytes) -> None:
    if message.resubmitted_at is not None:
        raise Refused(
            f"message {message.id} was sent again at {message.resubmitted_at:%Y-%m-%d %H:%M:%S}"
            " UTC; set `force` to send it once more"
        )
    again = f"message {message.id} would be rejected again: "
    try:
        sender.check(body)
        reused = reused_key(sender, message, body)
    except RefusedMessage as refused:
        advice = "correct it and give it with `body`, or set `force`"
        raise Refused(f"{again}{refused.description}; {advice}") from refused
    if reused is not None:
        raise Refused(
            f"{again}{reused} is the run of a message with other content; give this one a key of "
            "its own and send it with `body`, or set `force` when that run was terminated"
        )


def reused_key(
    sender: "ServiceBusSender[Any]", message: RejectedMessage, body: bytes
) -> str | None:
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
