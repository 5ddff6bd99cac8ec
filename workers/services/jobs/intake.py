"""The one entry point of queue messages that ask for jobs."""

import hashlib
import json

from temporalio.client import Client
from temporalio.service import RPCError

from adapters.ports import PortError, RejectedMessages
from adapters.ports.jobs import JobAlias, JobAliases
from contracts.jobs import JobQueueMessage, JobRequest, job_workflow_id
from workers.services.bodies import RefusedMessage, printable
from workers.services.errors import ServiceUnavailable, TemporalRefused
from workers.services.intake import both_answer, given_back, refuse, warn_of_deliveries
from workers.services.jobs.errors import InvalidJob
from workers.services.jobs.messages import NOT_STARTED, read_message, without_secrets
from workers.services.jobs.parameters import without_secret
from workers.services.jobs.submission import JobSubmission
from workers.services.runs import TemporalRuns
from workers.services.verdicts import INVALID_MESSAGE, KEY_REUSED, Abandon, Settle, Verdict


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
        aliases: JobAliases,
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
