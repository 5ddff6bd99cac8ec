"""From the body of a queue message to a request that may be trusted."""

import json
from typing import Final

from pydantic import ValidationError

from contracts.jobs import MESSAGE_BYTES, JobQueueMessage
from workers.redaction import Redaction
from workers.services.bodies import RefusedMessage, object_of, printable, text_of
from workers.services.jobs.parameters import HIDDEN, errors_of, without_secret
from workers.services.verdicts import INVALID_MESSAGE

STAGE_NOT_SUPPORTED: Final = "StageNotSupported"
"""The message asks to continue a job of another system."""
NOT_STARTED: Final = "JobNotStarted"
"""The job was asked for before, and its sender would not learn what became of it."""


def read_message(raw: bytes) -> JobQueueMessage:
    """Check a body from outside and turn it into a message.

    Raises:
        RefusedMessage: It is not one, or asks to continue a job; no value stands in the reason.
    """
    data = object_of(text_of(raw, MESSAGE_BYTES))
    try:
        message = JobQueueMessage.model_validate(data)
    except ValidationError as error:
        problems = [f"{each.location}: {each.message}" for each in errors_of(error, within="")]
        raise RefusedMessage(INVALID_MESSAGE, "; ".join(problems)) from None
    unknown = sorted(data.keys() - JobQueueMessage.model_fields.keys())
    if unknown:
        known = ", ".join(JobQueueMessage.model_fields)
        raise RefusedMessage(
            INVALID_MESSAGE, f"{printable(', '.join(unknown))[:300]}: not known; known are {known}"
        )
    if message.parameters.get("webhook_secret") == HIDDEN:
        raise RefusedMessage(
            INVALID_MESSAGE,
            "parameters.webhook_secret: was left out of the record; write it in again",
        )
    if message.stage != 1:
        raise RefusedMessage(
            STAGE_NOT_SUPPORTED,
            f"stage {message.stage}: docflow starts jobs at stage 1 and continues them by itself; "
            "a job that another system has begun is finished there",
        )
    if message.stage_results:
        raise RefusedMessage(
            STAGE_NOT_SUPPORTED,
            "stage_results: a job that begins at stage 1 has none yet; one that another system has "
            "begun is finished there",
        )
    return message


def without_secrets(raw: bytes) -> bytes:
    """A body as it may be recorded: the secret of its webhook is masked."""
    try:
        data = object_of(raw.decode("utf-8-sig"))
    except (RefusedMessage, UnicodeDecodeError):
        return Redaction()(raw.decode("utf-8", "replace")).encode()
    parameters = data.get("parameters")
    if isinstance(parameters, dict):
        data["parameters"] = without_secret(parameters)  # pyright: ignore[reportUnknownArgumentType]
    return json.dumps(data).encode()
