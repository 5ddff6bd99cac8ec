"""What a receiver decides about a locked message, carried out.

Source: OASIS AMQP 1.0, part 3.4 (delivery states), as Azure Service Bus reads it.
"""

import uuid
from typing import cast

from emulators.service_bus.broker import DESCRIPTION, REASON, MessageQueue
from emulators.service_bus.codec import Described, Value
from emulators.service_bus.performatives import (
    ACCEPTED,
    ERROR,
    MODIFIED,
    REJECTED,
    RELEASED,
    fields_of,
)


def apply_outcome(queue: MessageQueue, token: uuid.UUID, state: Described) -> None:
    """Do with a locked message what its receiver has decided.

    Raises:
        BrokerError: The lock is gone, or the queue cannot do this.
        CodecError: This is not an outcome.
    """
    if state.descriptor == ACCEPTED:
        queue.complete(token)
    elif state.descriptor == REJECTED:
        queue.dead_letter(token, _reason(fields_of(state, REJECTED)[0]))
    elif state.descriptor == RELEASED:
        queue.release(token)
    else:
        delivery_failed, undeliverable_here, *_ = fields_of(state, MODIFIED)
        if undeliverable_here:
            queue.defer(token)
        elif delivery_failed:
            queue.abandon(token)
        else:
            queue.release(token)


def _reason(failure: Value) -> dict[str, str]:
    """Reason and description as application properties of a dead letter."""
    if failure is None:
        return {}
    condition, description, info, *_ = fields_of(failure, ERROR)
    if isinstance(info, dict):
        given = cast(dict[Value, Value], info)
        found = {REASON: given.get(REASON), DESCRIPTION: given.get(DESCRIPTION)}
    else:
        found = {REASON: condition, DESCRIPTION: description}
    return {key: str(text) for key, text in found.items() if isinstance(text, str)}
