"""The one entry point of import messages, whatever queue or host they come through."""

import json
import logging
import re
from collections import Counter
from datetime import timedelta
from typing import Any, Final, NoReturn, cast

from pydantic import ValidationError
from temporalio.client import Client
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from adapters.ports import PortError, RejectedMessages
from contracts.imports import (
    IMPORT_MESSAGE,
    BulkMessage,
    DeleteMessage,
    DocumentType,
    FileMessage,
    ImportMessage,
    ImportOrder,
    ScheduleUploadMessage,
    TableMessage,
)
from workers.bridges.verdicts import (
    DESCRIPTION_LIMIT,
    INVALID_MESSAGE,
    MALFORMED_BODY,
    UNKNOWN_DOCUMENT_TYPE,
    Abandon,
    DeadLetter,
    Settle,
    Verdict,
)
from workflows import attributes
from workflows.imports import DocumentImport

logger = logging.getLogger(__name__)

BODY_LIMIT: Final = 256 * 1024
"""Bytes of a message body; also what a standard Service Bus queue takes at most."""
LOUD_FROM_DELIVERY: Final = 8
"""A queue gives a message up after its tenth delivery: from here on somebody should look."""
RECORDED_BODY: Final = 64 * 1024
"""Bytes of a rejected body that its record keeps."""
START_TIMEOUT: Final = timedelta(seconds=5)
SUMMARY_LIMIT: Final = 400
"""Bytes of a static summary that the server takes."""
PROBLEMS_LIMIT: Final = 20
PROBLEM_LIMIT: Final = 180

_KNOWN = frozenset(DocumentType)
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_TOO_BIG = re.compile(r"exceeds|too large|too long|limit", re.IGNORECASE)


class RefusedMessage(Exception):
    """A message that can never become an import."""

    def __init__(self, reason: str, description: str) -> None:
        super().__init__(description)
        self.reason = reason
        self.description = description[:DESCRIPTION_LIMIT]


class ImportDoor:
    """Turns the body of a message into a started workflow, or says why not.

    Any number of calls may run at once.
    """

    def __init__(
        self,
        client: Client,
        rejected: RejectedMessages,
        *,
        queue: str,
        park_for_days: int = 14,
    ) -> None:
        self._client = client
        self._rejected = rejected
        self._queue = queue
        self._park_for_seconds = park_for_days * 24 * 3600

    async def accept(self, raw: bytes, delivery_count: int, message_id: str | None) -> Verdict:
        """Start the import that a message asks for.

        May be called again with the same message: one task is one workflow.

        Args:
            raw: The body as it came.
            delivery_count: Deliveries before this one; 0 the first time.
            message_id: As the sender set it.
        """
        if delivery_count + 1 >= LOUD_FROM_DELIVERY:
            logger.error(
                "message %r of queue %r is at delivery %d: it will soon be dead-lettered "
                "by the queue; find out why it cannot be taken in",
                message_id,
                self._queue,
                delivery_count + 1,
            )
        try:
            return await self._start(read_message(raw), message_id)
        except RefusedMessage as refused:
            return await self._refuse(refused, raw, message_id)

    async def ready(self) -> bool:
        """Whether Temporal and the record of rejected messages answer."""
        try:
            healthy = await self._client.service_client.check_health(timeout=START_TIMEOUT)
            await self._rejected.list(1)
        except (RPCError, PortError) as error:
            logger.debug("not ready: %s", error)
            return False
        return healthy

    async def _start(self, message: ImportMessage, message_id: str | None) -> Verdict:
        workflow_id = message.workflow_id
        try:
            await self._client.start_workflow(
                DocumentImport.run,
                ImportOrder(message=message, park_for_seconds=self._park_for_seconds),
                id=workflow_id,
                task_queue="imports",
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                request_eager_start=True,
                search_attributes=attributes.at_start(
                    "imports", message.document_type.value, message.project_id
                ),
                static_summary=summary(message),
                static_details=_details(message, message_id),
                rpc_timeout=START_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            logger.info(
                "message %r: %s was started before; the first message of a task counts",
                message_id,
                workflow_id,
            )
            return Settle(workflow_id, duplicate=True)
        except RPCError as error:
            if error.status is RPCStatusCode.INVALID_ARGUMENT and _TOO_BIG.search(error.message):
                raise RefusedMessage(
                    INVALID_MESSAGE, f"Temporal does not take the message: {error.message}"
                ) from error
            logger.warning("message %r: %s not started: %s", message_id, workflow_id, error)
            return Abandon(f"Temporal: {error.status.name}: {error.message}")
        return Settle(workflow_id)

    async def _refuse(
        self, refused: RefusedMessage, raw: bytes, message_id: str | None
    ) -> DeadLetter | Abandon:
        try:
            await self._rejected.record(
                self._queue, message_id, refused.reason, refused.description, raw
            )
        except PortError as error:
            logger.warning("message %r: rejection not recorded: %s", message_id, error)
            return Abandon(f"rejection not recorded: {error}")
        logger.warning("message %r: %s: %s", message_id, refused.reason, refused.description)
        return DeadLetter(refused.reason, refused.description)


def read_message(raw: bytes) -> ImportMessage:
    """Check a body from outside and turn it into a message.

    Raises:
        RefusedMessage: It is none; reason and description say why.
    """
    if len(raw) > BODY_LIMIT:
        raise RefusedMessage(
            MALFORMED_BODY, f"the body has {len(raw)} bytes; at most {BODY_LIMIT} are taken"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RefusedMessage(
            MALFORMED_BODY, f"the body is not UTF-8: byte {error.start} cannot be read"
        ) from error
    document_type = _object(text).get("document_type")
    if not isinstance(document_type, str) or document_type not in _KNOWN:
        raise RefusedMessage(UNKNOWN_DOCUMENT_TYPE, _unknown(document_type))
    try:
        return IMPORT_MESSAGE.validate_json(text)
    except ValidationError as error:
        raise _invalid(error) from error


def _object(text: str) -> dict[str, Any]:
    """The JSON object of a body, refused where readers of JSON would disagree about it."""
    if _NUL.search(text):
        raise RefusedMessage(MALFORMED_BODY, "the body holds NUL characters (\\u0000)")
    try:
        data = json.loads(
            text,
            object_pairs_hook=_without_repeats,
            parse_constant=_no_number,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except json.JSONDecodeError as error:
        raise RefusedMessage(
            MALFORMED_BODY,
            f"the body is not JSON: {error.msg} at line {error.lineno} column {error.colno}",
        ) from error
    except RecursionError as error:
        raise RefusedMessage(MALFORMED_BODY, "the body is nested too deeply") from error
    if not isinstance(data, dict):
        raise RefusedMessage(MALFORMED_BODY, "the body is not a JSON object { ... }")
    return cast(dict[str, Any], data)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise RefusedMessage(MALFORMED_BODY, f"the field {_shown(twice)} stands there twice")
    return data


def _no_number(text: str) -> NoReturn:
    raise RefusedMessage(MALFORMED_BODY, f"{text} is not a number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise RefusedMessage(MALFORMED_BODY, f"the number {_shown(text)} is too large")
    return number


def _bounded(text: str) -> int:
    if len(text) > 19:
        raise RefusedMessage(MALFORMED_BODY, f"the number {_shown(text)} has too many digits")
    return int(text)


def _unknown(document_type: object) -> str:
    known = ", ".join(DocumentType)
    if document_type is None:
        return f"document_type is missing; known are {known}"
    shown = _shown(document_type) if isinstance(document_type, str) else "that is no text"
    return f"document_type {shown} is not known; known are {known}"


def _invalid(error: ValidationError) -> RefusedMessage:
    problems: list[str] = []
    for problem in error.errors(include_url=False, include_context=False, include_input=False):
        if problem["type"] == "json_invalid":
            return RefusedMessage(MALFORMED_BODY, f"the body is not JSON: {problem['msg']}")
        # The first part of the location is the document type that chose the model.
        field = ".".join(str(part) for part in problem["loc"][1:]) or "message"
        reason = problem["msg"].removeprefix("Value error, ")
        problems.append(f"{_printable(field)[:80]}: {_printable(reason)[:PROBLEM_LIMIT]}")
    more = len(problems) - PROBLEMS_LIMIT
    if more > 0:
        problems[PROBLEMS_LIMIT:] = [f"and {more} more"]
    return RefusedMessage(INVALID_MESSAGE, "; ".join(problems))


def _shown(text: str) -> str:
    """Foreign text, quoted and bounded."""
    return repr(_printable(text if len(text) <= 40 else f"{text[:40]}..."))


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)


def summary(message: ImportMessage) -> str:
    """One sentence that says what a run is about, within the server's limit."""
    what = message.document_type.value.replace("_", " ")
    project = f"project {message.project_id}"
    match message:
        case ScheduleUploadMessage():
            text = f"Upload of {_name_of(message)} as a schedule of {project}"
        case FileMessage():
            text = f"Import of {_name_of(message)} as {what} into {project}"
        case BulkMessage():
            ids = message.activity_ids
            which = "selected" if message.filters or ids is None else f"{len(ids)}"
            text = f"{what.capitalize()} on {which} activities of {project}"
        case DeleteMessage():
            what = what.removesuffix(" delete")
            text = f"Removal of the {what} lines of service {message.service_id} from {project}"
    return text.encode()[:SUMMARY_LIMIT].decode(errors="ignore")


def _name_of(message: FileMessage | ScheduleUploadMessage) -> str:
    if isinstance(message, ScheduleUploadMessage):
        name = message.original_filename or message.filename or message.target_blob_name
    else:
        name = message.filename or message.blob_name
    return _printable(name.rsplit("/", 1)[-1])[:120]


def _details(message: ImportMessage, message_id: str | None) -> str:
    lines = [f"Task {message.task_id}"]
    if isinstance(message, FileMessage):
        lines.append(f"Blob {_printable(message.blob_name)}")
    if isinstance(message, TableMessage):
        lines.append(f"Strategy {message.strategy}")
    if message_id is not None:
        lines.append(f"Message id {_printable(message_id)[:128]}")
    return "; ".join(lines)
