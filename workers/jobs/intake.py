"""Queue messages that ask for jobs: checked, accepted, and sent again.

Messages of jobs that were rejected, sent to their queue again.

One whose secret was left out of the record is refused. The key is the id of the sender, under which
docflow knows one job.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from pydantic import ValidationError
from temporalio.client import Client
from temporalio.service import RPCError

from activities.jobs.ports import JobAlias
from activities.jobs.store import SqlJobAliases
from adapters.ports.errors import PortError
from adapters.ports.records import RejectedMessages
from workers.jobs.settings import JobQueueSettings
from workers.jobs.submission import HIDDEN, InvalidJob, JobSubmission, errors_of, without_secret
from workers.shared.logs import Redaction
from workers.shared.services.bodies import (
    INVALID_MESSAGE,
    KEY_REUSED,
    Abandon,
    RefusedMessage,
    Settle,
    Verdict,
    object_of,
    printable,
    text_of,
)
from workers.shared.services.errors import ServiceUnavailable, TemporalRefused
from workers.shared.services.intake import both_answer, given_back, refuse, warn_of_deliveries
from workers.shared.services.runs import TemporalRuns
from workers.shared.services.service_bus import (
    ServiceBusDeadLetters,
    ServiceBusSender,
    open_service_bus_dead_letters,
)
from workflows.jobs.runs import MESSAGE_BYTES, JobQueueMessage, JobRequest, job_workflow_id

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


class JobIntake:
    """Turns the body of a message into a job, or returns why not.

    Args:
        submission: Starts jobs.
        aliases: The foreign ids of messages.
        rejected: Keeps messages that can never be accepted, without their secrets.
        client: Of Temporal.
        queue: Name of the queue, for that record.
    """

    def __init__(
        self,
        submission: JobSubmission,
        aliases: SqlJobAliases,
        rejected: RejectedMessages,
        client: Client,
        *,
        queue: str,
    ) -> None:
        self._submission = submission
        self._aliases = aliases
        self._rejected = rejected
        self._client = client
        self._queue = queue

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """Start the job that a message asks for.

        May be called again with the same message: one foreign id is one job. Another message of
        the same foreign id is refused.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one; 0 the first time.
            message_id: As the sender set it.
        """
        warn_of_deliveries(self._queue, message_id, delivery_count)
        try:
            return await self._start(read_message(raw))
        except InvalidJob as error:
            refused = RefusedMessage(INVALID_MESSAGE, str(error))
        except RefusedMessage as error:
            refused = error
        except (ServiceUnavailable, PortError) as error:
            return Abandon(str(error))
        body = without_secrets(raw)
        return await refuse(self._rejected, self._queue, message_id, refused, body)

    async def ready(self) -> bool:
        """Whether Temporal and the record of rejected messages answer."""
        return await both_answer(self._client, self._rejected)

    async def _start(self, message: JobQueueMessage) -> Verdict:
        digest = digest_of(message)
        earlier = await self._aliases.get(message.job_id)
        if earlier is not None and (verdict := await self._verdict(earlier, digest, message)):
            return verdict
        job = await self._submission.prepare(
            JobRequest(
                job_type=message.job_type, parameters=message.parameters, alias=message.job_id
            )
        )
        wanted = JobAlias(message.job_id, digest, job.order.job_id)
        kept = await self._aliases.claim(wanted)
        if earlier is not None or kept != wanted:
            if verdict := await self._verdict(kept, digest, message):
                return verdict
            if kept != wanted:
                # Never started, and the files have changed since.
                await self._aliases.move(wanted)
        try:
            done = await self._submission.start(job)
        except (InvalidJob, TemporalRefused) as error:
            # Corrected, it may come again under its id.
            await self._aliases.release(wanted)
            if isinstance(error.__cause__, RPCError):
                return given_back(error.__cause__)
            raise
        if done.notes and not done.created and done.alias != message.job_id:
            await self._aliases.release(wanted)
            raise RefusedMessage(
                NOT_STARTED, f"{'; '.join(done.notes)}; it is job {done.job_id[:8]}"
            )
        return Settle(job_workflow_id(done.job_id), duplicate=not done.created)

    async def _verdict(
        self, kept: JobAlias, digest: str, message: JobQueueMessage
    ) -> Verdict | None:
        """On a message whose foreign id was used before; None: its job was never started."""
        if kept.digest != digest:
            raise RefusedMessage(
                KEY_REUSED,
                f"job_id {printable(kept.alias)[:100]!r} came before with other content, as job "
                f"{kept.job_id}: this message was not used; send it again under another job_id",
            )
        workflow_id = job_workflow_id(kept.job_id)
        if await TemporalRuns(self._client, {}).look(workflow_id) is None:
            return None
        if await self._submission.has_other_secret(kept.job_id, message.parameters):
            raise RefusedMessage(
                KEY_REUSED,
                f"job_id {printable(kept.alias)[:100]!r} came before with another webhook_secret, "
                f"which signs the messages of job {kept.job_id}: this message was not used; name "
                "a secret that can be rotated as webhook_secret_name, or do the job again with "
                "--rerun",
            )
        return Settle(workflow_id, duplicate=True)


def digest_of(message: JobQueueMessage) -> str:
    """The same for two messages that ask for the same; neither secret nor time counts."""
    content = {
        "job_type": message.job_type,
        "parameters": without_secret(message.parameters),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


SENDER: Final = ServiceBusSender(
    read_message, lambda message: message.job_id, JobQueueSettings.read
)


def dead_letters(
    environment: Mapping[str, str],
) -> AbstractAsyncContextManager[ServiceBusDeadLetters]:
    """The dead letters of the queue.

    Raises:
        SettingsError: A setting is missing or wrong.
    """
    return open_service_bus_dead_letters(JobQueueSettings.read(environment))
