"""The function of a batch: takes what its queue brings, starts the loads, and returns.

Lambda looks for `handler`. It is called from one thread, for one event at a time; between two
events the process may stand still for minutes.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from pydantic import BaseModel, Field, TypeAdapter

from adapters.ports.errors import PortError
from workers.batches.documents import DocumentIntake
from workers.shared.bridges.consumer import Retry
from workers.shared.bridges.transport import moment_of
from workers.shared.connect import connect
from workers.shared.errors import SettingsError, TemporalUnreachable
from workers.shared.logs import about, bound, configure_host_logs
from workers.shared.services.bodies import Abandon, DeadLetter, Settle
from workflows.batches.names import API_KEY_SECRET, BatchKey, Names, names_of

if TYPE_CHECKING:
    from adapters.aws.queues import AwsQueues

logger = logging.getLogger(__name__)

SPARE_SECONDS: Final = 3.0
"""Of the time that an event is given, to answer before Lambda ends the process."""


class Context(Protocol):
    """The context that Lambda passes with an event."""

    aws_request_id: str

    def get_remaining_time_in_millis(self) -> int:
        """Until the process is ended."""
        ...


class _Attributes(BaseModel):
    receives: int = Field(default=1, alias="ApproximateReceiveCount")
    sent: str | None = Field(default=None, alias="SentTimestamp")


class _Record(BaseModel):
    message_id: str = Field(alias="messageId", min_length=1)
    body: str
    attributes: _Attributes = _Attributes()


class _Event(BaseModel):
    records: list[_Record] = Field(alias="Records")


_EVENT: Final = TypeAdapter(_Event)


class LoaderFunction:
    """One execution environment: its event loop, and what is opened in it and stays.

    Args:
        environment: Settings; read when the first event comes.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._runner = asyncio.Runner()
        self._opened = AsyncExitStack()
        self._opening = asyncio.Lock()
        self._intake: DocumentIntake | None = None
        self._queues: AwsQueues | None = None

    def handle(self, event: Any, context: Context) -> dict[str, list[dict[str, str]]]:
        """Start the load of every document of an event.

        Returns:
            The messages that the queue is to bring again: those that could not be accepted, for
            no fault of theirs. Exactly in the shape that Lambda reads; with any other, AWS brings
            all of them again.

        Raises:
            ValidationError: The event is none of SQS; all of it comes again.
            SettingsError: The function was not made by docflow, or lacks a setting.
        """
        records = _EVENT.validate_python(event).records
        seconds = context.get_remaining_time_in_millis() / 1000 - SPARE_SECONDS
        taken = self._runner.run(self._take(records, max(seconds, 0)))
        failed = [record.message_id for record in records if record.message_id not in taken]
        return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}

    def close(self) -> None:
        """Close what was opened; nothing may be handled after it."""
        self._runner.run(self._opened.aclose())
        self._runner.close()

    async def _take(self, records: list[_Record], seconds: float) -> set[str]:
        """Take records in for so many seconds; the ids of those that are done with."""
        taken: set[str] = set()
        try:
            async with asyncio.timeout(seconds):
                intake = self._intake = self._intake or await self._open_intake()
                async with asyncio.TaskGroup() as takers:
                    for record in records:
                        retry = Retry(hold=seconds)
                        taking = partial(self._take_one, intake, record, retry, taken)
                        takers.create_task(about(taking, message_id=record.message_id))
        except (TemporalUnreachable, PortError) as error:
            logger.warning("%s", error)
        except TimeoutError:
            logger.warning("%d of %d messages come again", len(records) - len(taken), len(records))
        return taken

    async def _take_one(
        self, intake: DocumentIntake, record: _Record, retry: Retry, taken: set[str]
    ) -> None:
        raw = record.body.encode("utf-8", "surrogatepass")
        earlier = record.attributes.receives - 1
        accept = partial(intake.accept, sent_at=moment_of(record.attributes.sent))
        match await retry.run(accept, raw, earlier, record.message_id):
            case Settle():
                taken.add(record.message_id)
            case DeadLetter() as verdict:
                if await self._dead_letter(record, verdict):
                    taken.add(record.message_id)
            case Abandon(reason):
                logger.warning("message %r comes again: %s", record.message_id, reason)

    async def _dead_letter(self, record: _Record, verdict: DeadLetter) -> bool:
        """Put a message among the dead letters of its batch, with the reason.

        Returns:
            False: it could not be; the queue puts it there after its last receive, without one.
        """
        reason = f"{verdict.reason}: {verdict.description}"
        try:
            queues = await self._open_queues()
            await queues.dead_letter(self._names(), record.body, reason, record.message_id)
        except PortError as error:
            logger.warning(
                "message %r could not be dead-lettered yet: %s", record.message_id, error
            )
            return False
        return True

    async def _open_intake(self) -> DocumentIntake:
        client = await connect(api_key=await self._api_key())
        return DocumentIntake(client, self._key(), self._names().queue)

    async def _api_key(self) -> str | None:
        """The key of Temporal, from the secret that the environment names."""
        name = self._environment.get(API_KEY_SECRET)
        if not name:
            return None
        # Loaded late, as below.
        from adapters.aws.session import secret_text
        from workers.shared.settings.aws import read_aws

        return await secret_text(read_aws(self._environment), name)

    def _names(self) -> Names:
        return names_of(_setting(self._environment, "DOCFLOW_BATCH_PREFIX"), self._key())

    async def _open_queues(self) -> "AwsQueues":
        # Loaded late: nearly no event needs it, and it would cost every cold start.
        from adapters.aws.queues import AwsQueues
        from adapters.aws.session import open_aws
        from workers.shared.settings.aws import read_aws

        async with self._opening:
            if self._queues is None:
                clients = await self._opened.enter_async_context(
                    open_aws(read_aws(self._environment))
                )
                self._queues = AwsQueues(clients.sqs)
        return self._queues

    def _key(self) -> BatchKey:
        return BatchKey(
            case_id=int(_setting(self._environment, "DOCFLOW_CASE_ID")),
            batch_id=int(_setting(self._environment, "DOCFLOW_BATCH_ID")),
        )


def _setting(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name)
    if not value:
        raise SettingsError(
            f"missing setting: {name}; docflow sets it when it clones this function for a batch, "
            "and the source itself is to be fed by no queue"
        )
    return value


_FUNCTION: Final = LoaderFunction(os.environ)


def handler(event: Any, context: Context) -> dict[str, list[dict[str, str]]]:
    """Take an event; every line that is logged meanwhile names the request.

    Raises:
        ValidationError: The event is none of SQS.
        SettingsError: A setting is missing, or cannot be used.
    """
    configure_host_logs(os.environ)
    with bound(request_id=context.aws_request_id):
        return _FUNCTION.handle(event, context)
