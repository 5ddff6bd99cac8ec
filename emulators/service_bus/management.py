"""Requests to `$management` of a queue and to `$cbs`, and their answers.

Source: Azure Service Bus, "AMQP request/response operations"; AMQP claims-based security 1.0.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from emulators.service_bus.broker import (
    DESCRIPTION,
    REASON,
    BrokerError,
    LockLost,
    MessageNotFound,
    MessageQueue,
)
from emulators.service_bus.codec import Array, CodecError, Int, Symbol, Timestamp, Value
from emulators.service_bus.message import encode_response, parse, read_request
from emulators.service_bus.node import Directory
from emulators.service_bus.queued_message import QueuedMessage

_log = logging.getLogger(__name__)

_OK, _ACCEPTED, _NO_CONTENT = 200, 202, 204
_BAD_REQUEST, _NOT_FOUND, _GONE, _NOT_IMPLEMENTED = 400, 404, 410, 501
_MAX_PEEKED: Final = 1000
_MAX_BATCH: Final = 10_000
_Kind = TypeVar("_Kind")
_Body = dict[str, Value]


class BadRequest(BrokerError):
    """A request lacks something, or has it in a wrong type."""

    condition = "com.microsoft:argument-error"


class NotImplementedHere(BrokerError):
    """The real service could do this; this emulator does not."""

    condition = "amqp:not-implemented"


_STATUSES: Final[dict[type[BrokerError], int]] = {
    LockLost: _GONE,
    MessageNotFound: _NOT_FOUND,
    NotImplementedHere: _NOT_IMPLEMENTED,
}


def answer(queue: MessageQueue, data: bytes) -> bytes:
    """Answer a request to a queue's management node.

    Raises:
        CodecError: The request is no such message, so that it cannot even be answered.
    """
    request_id, properties, value = read_request(data)
    try:
        operation = properties.get("operation")
        handler = _OPERATIONS.get(operation) if isinstance(operation, str) else None
        if handler is None:
            raise NotImplementedHere(f"This emulator does not support {operation}.")
        if not isinstance(value, dict):
            raise BadRequest("The body of a request must be a map.")
        body = handler(queue, cast(_Body, value))
    except BrokerError as error:
        status = _STATUSES.get(type(error), _BAD_REQUEST)
        _log.info("%s: %s", queue.name, error)
        return _respond(request_id, status, str(error), {}, error.condition)
    return _respond(request_id, _NO_CONTENT if body is None else _OK, "OK", body or {})


def answer_token(directory: Directory, data: bytes) -> bytes:
    """Answer a put-token request: every token is good for everything there is.

    Raises:
        CodecError: The request is no such message.
    """
    request_id, properties, _ = read_request(data)
    audience = properties.get("name")
    status, description = _ACCEPTED, "Accepted"
    if properties.get("operation") != "put-token" or not isinstance(audience, str):
        status, description = _BAD_REQUEST, "A put-token request with a name is expected."
    elif not directory.knows(audience):
        status = _NOT_FOUND
        description = f"The messaging entity '{audience}' could not be found."
    answer = {"status-code": Int(status), "status-description": description}
    return encode_response(request_id, answer, None)


def _respond(
    request_id: Value, status: int, description: str, body: _Body, condition: str | None = None
) -> bytes:
    properties: dict[str, Value] = {
        "statusCode": Int(status),
        "statusDescription": description,
    }
    if condition is not None:
        properties["errorCondition"] = Symbol(condition)
    return encode_response(request_id, properties, body)


def _renew(queue: MessageQueue, body: _Body) -> _Body:
    tokens = _several(body, "lock-tokens", UUID)
    return {"expirations": Array(Timestamp(queue.renew(token) * 1000) for token in tokens)}


def _peek(queue: MessageQueue, body: _Body) -> _Body | None:
    limit = min(_one(body, "message-count", int), _MAX_PEEKED)
    messages = queue.peek(_one(body, "from-sequence-number", int), max(0, limit))
    return {"messages": [_listed(message) for message in messages]} if messages else None


def _receive_deferred(queue: MessageQueue, body: _Body) -> _Body:
    numbers = _several(body, "sequence-numbers", int)
    if _one(body, "receiver-settle-mode", int) == 0:
        return {"messages": [_listed(message) for message in queue.take_deferred(numbers)]}
    locked = queue.lock_deferred(numbers)
    return {
        "messages": [_listed(message) | {"lock-token": message.lock_token} for message in locked]
    }


def _schedule(queue: MessageQueue, body: _Body) -> _Body:
    items = cast(Sequence[_Body], _several(body, "messages", dict))
    encoded = [_one(item, "message", bytes) for item in items]
    try:
        contents = [parse(message) for message in encoded]
    except CodecError as error:
        raise BadRequest(f"A scheduled message is malformed: {error}.") from error
    if any(content.scheduled_for is None for content in contents):
        raise BadRequest("A scheduled message must have the time at which it becomes visible.")
    return {"sequence-numbers": Array(queue.send(content).sequence_number for content in contents)}


def _cancel(queue: MessageQueue, body: _Body) -> _Body:
    queue.cancel(_several(body, "sequence-numbers", int))
    return {}


def _settle(queue: MessageQueue, body: _Body) -> _Body:
    given = {REASON: body.get("deadletter-reason"), DESCRIPTION: body.get("deadletter-description")}
    extra = {key: text for key, text in given.items() if isinstance(text, str) and text}
    settlements: dict[str, Callable[[UUID], None]] = {
        "completed": queue.complete,
        "abandoned": queue.abandon,
        "defered": queue.defer,
        "suspended": lambda token: queue.dead_letter(token, extra),
    }
    status = _one(body, "disposition-status", str)
    settle = settlements.get(status)
    if settle is None:
        raise BadRequest(f"{status} is not a disposition: use one of {', '.join(settlements)}.")
    for token in _several(body, "lock-tokens", UUID):
        settle(token)
    return {}


_OPERATIONS: Final[dict[str, Callable[[MessageQueue, _Body], _Body | None]]] = {
    "com.microsoft:renew-lock": _renew,
    "com.microsoft:peek-message": _peek,
    "com.microsoft:receive-by-sequence-number": _receive_deferred,
    "com.microsoft:schedule-message": _schedule,
    "com.microsoft:cancel-scheduled-message": _cancel,
    "com.microsoft:update-disposition": _settle,
}


def _listed(message: QueuedMessage) -> _Body:
    return {"message": message.encode()}


def _one(body: _Body, name: str, kind: type[_Kind]) -> _Kind:
    value = body.get(name)
    if not isinstance(value, kind):
        raise BadRequest(f"{name} must be a {kind.__name__}.")
    return value


def _several(body: _Body, name: str, kind: type[_Kind]) -> Sequence[_Kind]:
    values: Any = body.get(name)
    if not isinstance(values, list) or len(cast(list[Value], values)) > _MAX_BATCH:
        raise BadRequest(f"{name} must be a list of at most {_MAX_BATCH} values.")
    items = cast(list[Value], values)
    if not items or not all(isinstance(item, kind) for item in items):
        raise BadRequest(f"{name} must hold at least one {kind.__name__}, and nothing else.")
    return items
