"""The one entry point of import messages, whatever queue or host they come through."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from adapters.ports.errors import PortError
from adapters.ports.records import RejectedMessages
from adapters.types.store import SqlDeclaredTypes
from workers.imports.messages import is_of_another_type, read_message
from workers.shared.register import DocumentRuns, MessagedDocument
from workers.shared.services.bodies import (
    INVALID_MESSAGE,
    Abandon,
    RefusedMessage,
    Settle,
    Verdict,
    printable,
)
from workers.shared.services.intake import (
    START_TIMEOUT,
    both_answer,
    earlier_run,
    given_back,
    refuse,
    short,
    warn_of_deliveries,
)
from workflows.imports.document_import import DocumentImport
from workflows.imports.findings import foreign_blob
from workflows.imports.messages import (
    BulkMessage,
    DeclaredMessage,
    DeleteMessage,
    FileMessage,
    ImportMessage,
    ScheduleUploadMessage,
    TableMessage,
)
from workflows.imports.runs import TASK_QUEUE, ImportInput
from workflows.shared import attributes
from workflows.shared.contracts import MEMO, Origin, digest_of
from workflows.shared.declared_types import DeclaredType

logger = logging.getLogger(__name__)


class ImportIntake:
    """Turns the body of a message into a started workflow, or returns why not.

    Any number of calls may run at once.
    """

    def __init__(
        self,
        client: Client,
        rejected: RejectedMessages,
        *,
        queue: str,
        types: SqlDeclaredTypes | None = None,
        others: Mapping[str, DocumentRuns] | None = None,
        park_for_days: int = 14,
        prefixes: Sequence[str] = (),
    ) -> None:
        """Set up.

        Args:
            client: Of the namespace.
            rejected: Record of messages that can never be accepted.
            queue: Where messages come from.
            types: Those of teams.
            others: Who takes documents of the types that other pipelines have, by type.
            park_for_days: How long runs wait for an answer.
            prefixes: Where documents may be; none: anywhere but in docflow's own places.
        """
        self._client = client
        self._rejected = rejected
        self._types = types
        self._others = others or {}
        self._queue = queue
        self._prefixes = prefixes
        self._park_for_seconds = park_for_days * 24 * 3600

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """Start the import that a message asks for.

        May be called again with the same message: one task is one workflow. Another message of
        the same task is refused, unless the run of the first one was terminated.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one; 0 the first time.
            message_id: As the sender set it.
        """
        warn_of_deliveries(self._queue, message_id, delivery_count)
        try:
            return await self.start(raw, message_id)
        except RefusedMessage as refused:
            return await refuse(self._rejected, self._queue, message_id, refused, raw)

    async def start(
        self,
        raw: bytes,
        message_id: str | None,
        permit: Callable[[ImportMessage], None] = lambda message: None,
    ) -> Settle | Abandon:
        """As `accept`, for a caller who is told at once.

        Args:
            raw: The body as it came.
            message_id: As the sender set it.
            permit: Refuses a message that its sender may not send, as it was read.

        Raises:
            RefusedMessage: The message can never be accepted.
        """
        try:
            types = await self._declared(raw)
        except PortError as error:
            logger.warning("message %r: its type cannot be looked up: %s", message_id, error)
            return Abandon(f"its type cannot be looked up: {error}")
        message = read_message(raw, {**types, **self._others})
        permit(message)
        if (refused := foreign_blob(message, self._prefixes)) is not None:
            raise RefusedMessage(INVALID_MESSAGE, refused)
        return await self._start(message, message_id, types)

    async def _declared(self, raw: bytes) -> Mapping[str, DeclaredType]:
        """The declared types, if the message is about none of docflow's own."""
        if self._types is None or not is_of_another_type(raw):
            return {}
        return await self._types.in_force()

    async def ready(self) -> bool:
        """Whether Temporal and the record of rejected messages answer."""
        return await both_answer(self._client, self._rejected)

    async def _start(
        self, message: ImportMessage, message_id: str | None, types: Mapping[str, DeclaredType]
    ) -> Settle | Abandon:
        # Of the message as it was sent, whatever version of its type is in force.
        origin = Origin(queue=self._queue, message_id=message_id, digest=digest_of(message))
        message = _with_version(message, types)
        try:
            if isinstance(message, DeclaredMessage) and message.document_type in self._others:
                others = self._others[message.document_type]
                id, is_new = await others.start(_sent(message, origin))
                return Settle(id, duplicate=not is_new)
            return await self._begin(message, origin)
        except RPCError as error:
            verdict = given_back(error)
            logger.warning("message %r: not started: %s", message_id, error)
            return verdict
        except PortError as error:
            logger.warning("message %r: its document cannot be looked at: %s", message_id, error)
            return Abandon(f"its document cannot be looked at: {error}")

    async def _begin(self, message: ImportMessage, origin: Origin) -> Settle | Abandon:
        workflow_id = message.workflow_id
        if await self._is_started(message, origin, WorkflowIDReusePolicy.REJECT_DUPLICATE):
            return Settle(workflow_id)
        earlier = await earlier_run(self._client, workflow_id)
        if not earlier.terminated:
            earlier.refuse_other(origin.digest)
            logger.info(
                "message %r: %s was started before by the same message",
                origin.message_id,
                workflow_id,
            )
            return Settle(workflow_id, duplicate=True)
        again = WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY
        if await self._is_started(message, origin, again):
            return Settle(workflow_id)
        return Abandon(f"{workflow_id} was started by another message at the same moment")

    async def _is_started(
        self, message: ImportMessage, origin: Origin, reuse: WorkflowIDReusePolicy
    ) -> bool:
        """Start a run; False: there is one already."""
        try:
            await self._client.start_workflow(
                DocumentImport.run,
                ImportInput(
                    message=message,
                    park_for_seconds=self._park_for_seconds,
                    notices=True,
                    origin=origin,
                ),
                id=message.workflow_id,
                task_queue=TASK_QUEUE,
                id_reuse_policy=reuse,
                # A repeated call of the client library carries its request id, which the server
                # knows: only another message meets a run here.
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                request_eager_start=True,
                memo={MEMO: origin.digest},
                search_attributes=attributes.at_start(
                    "imports", str(message.document_type), message.project_id
                ),
                static_summary=summary(message),
                static_details=_details(message, origin.message_id),
                rpc_timeout=START_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            return False
        return True


_OF_ANY_DOCUMENT: Final = {
    *("document_type", "project_id", "task_id", "blob_name", "filename", "unknown_fields"),
    *("scope", "sheet", "encoding"),
}


def _sent(message: DeclaredMessage, origin: Origin) -> MessagedDocument:
    """A document for another pipeline.

    Raises:
        RefusedMessage: The message has a field that counts for imports alone.
    """
    if unused := sorted(message.model_fields_set - _OF_ANY_DOCUMENT):
        raise RefusedMessage(
            INVALID_MESSAGE,
            f"{', '.join(unused)}: files of type {message.document_type} are read as uploads are; "
            "leave this out. What is not clear is asked in the inbox",
        )
    return MessagedDocument(
        type=message.document_type,
        project=message.project_id,
        task=message.task_id,
        origin=origin,
        blob_name=message.blob_name,
        filename=message.document_name,
        scope=message.scope,
        sheet=message.sheet,
        encoding=message.encoding,
        unknown_fields=message.unknown_fields,
    )


def _with_version(message: ImportMessage, types: Mapping[str, DeclaredType]) -> ImportMessage:
    """The message with the version of its type that is in force: its run keeps that one."""
    if not isinstance(message, DeclaredMessage) or message.type_digest is not None:
        return message
    declared = types.get(message.document_type)
    return (
        message if declared is None else message.model_copy(update={"type_digest": declared.digest})
    )


def summary(message: ImportMessage) -> str:
    """One sentence on what a run is about, within the server's limit."""
    what = str(message.document_type).replace("_", " ")
    project = f"project {message.project_id}"
    match message:
        case ScheduleUploadMessage():
            text = f"Upload of {_name_of(message)} as a schedule of {project}"
        case FileMessage():
            text = f"Import of {_name_of(message)} as {what} into {project}"
        case BulkMessage():
            ids = message.activity_ids
            which = f"{len(ids)}" if ids and not message.filters else "selected"
            text = f"{what.capitalize()} on {which} activities of {project}"
        case DeleteMessage():
            what = what.removesuffix(" delete")
            text = f"Removal of the {what} lines of service {message.service_id} from {project}"
    return short(text)


def _name_of(message: FileMessage | ScheduleUploadMessage) -> str:
    if isinstance(message, ScheduleUploadMessage):
        name = message.original_filename or message.filename or message.target_blob_name
    else:
        name = message.filename or message.blob_name
    return printable(name.rsplit("/", 1)[-1])[:120]


def _details(message: ImportMessage, message_id: str | None) -> str:
    lines = [f"Task {message.task_id}"]
    if isinstance(message, FileMessage):
        lines.append(f"Blob {printable(message.blob_name)}")
    if isinstance(message, TableMessage):
        lines.append(f"Strategy {message.strategy}")
    if message_id is not None:
        lines.append(f"Message id {printable(message_id)[:128]}")
    return "; ".join(lines)
