"""Documents that come in over HTTP: checked as a message is, and started without a queue."""

import hashlib
import json
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from adapters.types.store import SqlDeclaredTypes
from workers.imports.intake import ImportIntake
from workers.imports.messages import upload_name
from workers.imports.service import file_fields
from workers.shared.services.bodies import KEY_REUSED, RefusedMessage, Settle
from workers.shared.services.errors import (
    Forbidden,
    InvalidRequest,
    ServiceUnavailable,
    WrongState,
)
from workers.shared.services.identity import (
    MAPPER,
    Identity,
    require_import,
    require_operator,
    require_role,
)
from workflows.imports.messages import DeclaredMessage, ImportMessage, workflow_id
from workflows.shared.declared_types import ORGANISATION

WAY_IN: Final = "http"
"""Stands in the place of a queue's name in what is known of where a document came from."""
_KEY: Final = 16
"""Characters of the digest of an idempotency key."""


@dataclass(frozen=True)
class SentDocument:
    """The file that comes with a message."""

    filename: str
    content: Callable[[], AsyncIterator[bytes]]


@dataclass(frozen=True)
class Submitted:
    """An import that was accepted."""

    workflow_id: str
    is_new: bool
    """False: the same was asked for before."""


class DocumentSubmission:
    """Starts imports for callers of the API.

    Args:
        intake: Of messages.
        blobs: Where documents go.
        types: The declared types, which say who may import their rows.
    """

    def __init__(self, intake: ImportIntake, blobs: Blobs, types: SqlDeclaredTypes) -> None:
        self._intake = intake
        self._blobs = blobs
        self._types = types

    async def submit(
        self,
        who: Identity,
        message: Mapping[str, Any],
        document: SentDocument | None = None,
        key: str | None = None,
    ) -> Submitted:
        """Start the import that a message asks for, or find the one that does the same.

        If the message names no task, its task follows from the idempotency key, or is made up. A
        document whose key was used before is not stored again: it has to be the first one.

        Args:
            who: Who asks.
            message: As on the queue; with a document without the fields that name it.
            document: The document itself; None: the message says where it is.
            key: Names the request.

        Raises:
            Forbidden: The caller is no operator, or lacks a role that the type needs.
            InvalidRequest: The message is wrong; nothing was started.
            WrongState: The task was started by another message, or the key came with another file.
            ServiceUnavailable: Temporal or the database does not answer.
        """
        require_operator(who, "documents")
        given = dict(message)
        kind, digest = (given.get(each) for each in ("document_type", "type_digest"))
        require_import(who, None, await self._types.written_by(f"{kind}", digest and f"{digest}"))
        part = _named(key) if key is not None else secrets.token_hex(_KEY // 2)
        given.setdefault("task_id", f"{given.get('document_type', 'document')}-{part}")
        stored = None
        if document is not None:
            stored = await self._stored(given, document, part)
        try:
            done = await self._start(who, given, key)
        except (InvalidRequest, WrongState, Forbidden):
            if stored is not None:
                await self._blobs.delete(stored)
            raise
        if stored is not None and done.workflow_id != workflow_id(
            f"{given['project_id']}", f"{given['task_id']}"
        ):
            # A run of another pipeline has its own copy, which goes with it.
            await self._blobs.delete(stored)
        return done

    async def _stored(self, given: dict[str, Any], document: SentDocument, part: str) -> str | None:
        """Store a document and name it in the message; the blob, unless it was there."""
        blob, filename = file_fields(str(given.get("document_type")))
        if named := sorted(given.keys() & {blob, filename}):
            raise InvalidRequest(f"{named[0]}: the file says this; leave it out")
        project, task = (str(given.get(each, "")) for each in ("project_id", "task_id"))
        if not project:
            raise InvalidRequest("project_id: name the project")
        name = upload_name(project, task, document.filename, part)
        given |= {blob: name, filename: document.filename[-255:]}
        try:
            await self._blobs.stat(name)
        except BlobNotFound:
            try:
                await self._blobs.write(name, document.content())
            except FileExistsError:
                return None
            return name
        if await _digest(document.content()) != await _digest(self._blobs.read(name)):
            raise WrongState(
                "this Idempotency-Key came before with another file, which counts: this file was "
                "not used; send it again under a key of its own"
            )
        return None

    async def _start(self, who: Identity, given: Mapping[str, Any], key: str | None) -> Submitted:
        def permit(message: ImportMessage) -> None:
            if isinstance(message, DeclaredMessage) and ORGANISATION in message.scope:
                require_role(who, MAPPER, _number(message.scope[ORGANISATION]))

        return await started(self._intake, given, key, permit)


def _anyone(message: ImportMessage) -> None:
    return


async def started(
    intake: ImportIntake,
    message: Mapping[str, Any],
    key: str | None = None,
    permit: Callable[[ImportMessage], None] = _anyone,
) -> Submitted:
    """Start the import that a message asks for, or find the one that does the same.

    Args:
        intake: Of messages.
        message: As on the queue.
        key: Names the request.
        permit: Refuses a message that its sender may not send, as it was read.

    Raises:
        InvalidRequest: The message is wrong; nothing was started.
        WrongState: The task was started by another message.
        ServiceUnavailable: Temporal or the database does not answer.
    """
    try:
        verdict = await intake.start(json.dumps(message).encode(), key, permit)
    except RefusedMessage as refused:
        error = WrongState if refused.reason == KEY_REUSED else InvalidRequest
        raise error(refused.description) from refused
    if not isinstance(verdict, Settle):
        raise ServiceUnavailable(verdict.reason)
    return Submitted(verdict.workflow_id, not verdict.duplicate)


def _number(organisation: str) -> int:
    """The organisation whose rows a message brings.

    Raises:
        InvalidRequest: It is no number.
    """
    if not (organisation.isascii() and organisation.isdigit()):
        raise InvalidRequest(f"scope.{ORGANISATION}: give the number of the organisation")
    return int(organisation)


async def _digest(content: AsyncIterator[bytes]) -> bytes:
    digest = hashlib.sha256()
    async for block in content:
        digest.update(block)
    return digest.digest()


def _named(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:_KEY]
