"""Documents of types about people and clubs that messages bring.

Each becomes an upload that goes through by itself and asks a person about what is not clear.
"""

import json
import secrets
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from pydantic import ValidationError
from temporalio.client import Client

from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from adapters.types.files import club_types, people_types
from workers.shared.register import Context, MessagedDocument
from workers.shared.services.bodies import (
    INVALID_MESSAGE,
    KEY_REUSED,
    RefusedMessage,
    invalid,
    printable,
)
from workers.shared.services.intake import earlier_run
from workers.spreadsheets.resources import spreadsheet_resources
from workers.spreadsheets.runs import SpreadsheetRuns
from workers.spreadsheets.settings import SpreadsheetSettings
from workers.spreadsheets.uploads import is_terminated
from workflows.shared.contracts import MEMO, BlobRef
from workflows.shared.declared_types import ORGANISATION, DeclaredType
from workflows.spreadsheets.mappings import Layout
from workflows.spreadsheets.runs import SpreadsheetInput, workflow_id

_TASKS: Final = uuid.UUID("0b8a6b1d-7d0e-4c55-9a3e-5d0f5a1f6c27")
"""Namespace of import uuids that stand for the work of a message."""
_LONGEST: Final = 200
_DETAILS: Final = 10_000
_SENDER: Final = "message"
"""Stands in the place of the person who uploads a file."""
_TYPES: Final[Mapping[str, DeclaredType]] = MappingProxyType(
    {**{name: each for name, each in people_types().items() if each.hook}, **club_types()}
)


def documents(context: Context) -> Mapping[str, "MessagedUploads"]:
    """The runs of uploads, by the types of their documents.

    Raises:
        SettingsError: A setting is wrong.
    """
    resources = context.resources
    uploads = MessagedUploads(
        context.client,
        SqlSpreadsheetViews(resources.database),
        spreadsheet_resources(resources.database).store,
        resources.blobs,
        SpreadsheetSettings.read(context.environment),
    )
    return dict.fromkeys(_TYPES, uploads)


class MessagedUploads:
    """Starts the runs of such documents."""

    def __init__(
        self,
        client: Client,
        views: SqlSpreadsheetViews,
        store: SqlSpreadsheetStore,
        blobs: Blobs,
        settings: SpreadsheetSettings,
    ) -> None:
        self._client = client
        self._runs = SpreadsheetRuns(client)
        self._views = views
        self._store = store
        self._blobs = blobs
        self._settings = settings

    async def start(self, document: MessagedDocument) -> tuple[str, bool]:
        """Start a run, or find it; see `DocumentRuns.start`.

        The row of an import says what became of it, also when Temporal has forgotten its run.
        """
        (owner,) = _TYPES[document.type].scope
        numbers = _numbers(document, {ORGANISATION, owner})
        found = _TASKS
        while True:
            found = uuid.uuid5(found, json.dumps([document.project, document.task]))
            run = workflow_id(str(found))
            row = await self._views.get(str(found), (numbers[ORGANISATION],))
            if row is not None and await is_terminated(row, self._runs, self._store):
                continue
            if row is not None:
                _refuse_other(run, row.fingerprint, document)
                return run, False
            if await self._started(str(found), document, numbers, owner):
                return run, True
            # Its row is not there yet, or belongs to the organisation that another message names.
            earlier = await earlier_run(self._client, run)
            if not earlier.terminated:
                earlier.refuse_other(document.origin.digest)
                return run, False

    async def _started(
        self, named: str, document: MessagedDocument, numbers: Mapping[str, int], owner: str
    ) -> bool:
        """Start a run that reads a copy: the file of the sender is not removed with the import.

        The note of the copy is written before it, as for any upload.
        """
        copy = f"spreadsheets/{named}/{secrets.token_hex(16)}"
        order = self._order(named, document, numbers, owner, copy)
        await self._views.note_upload(named, copy, _SENDER, datetime.now(UTC))
        try:
            source = await self._blobs.copy(document.blob_name, copy)
        except BlobNotFound as error:
            await self._store.forget_upload(copy)
            raise RefusedMessage(
                INVALID_MESSAGE,
                f"blob_name: there is no {document.blob_name}; store the document before you send "
                "its message",
            ) from error
        order, digest = order.model_copy(update={"source": source}), document.origin.digest
        memo = {MEMO: digest, "fingerprint": digest}
        if not await self._runs.start_once(order, memo, _details(document)):
            await self._blobs.delete(copy)
            return False
        # The import can be seen while no worker is there, and the purge leaves the copy alone.
        await self._store.open(order, workflow_id(named), datetime.now(UTC))
        return True

    def _order(
        self,
        named: str,
        document: MessagedDocument,
        numbers: Mapping[str, int],
        owner: str,
        copy: str,
    ) -> SpreadsheetInput:
        """The input of a run.

        Raises:
            RefusedMessage: A field of the message is longer than an upload can have.
        """
        public, digest = self._settings.public_url, document.origin.digest
        try:
            return SpreadsheetInput(
                uuid=named,
                organisation_id=numbers[ORGANISATION],
                import_type=document.type,
                context_id=None if owner == ORGANISATION else numbers[owner],
                type_digest=_TYPES[document.type].digest,
                source=BlobRef(name=copy, size=0),
                filename=document.filename,
                by=f"{_SENDER} {document.project}/{document.task}"[:_LONGEST],
                auto_start=True,
                # Whoever sends messages sees no page that lists what is left out.
                asks_columns=True,
                layout=Layout(sheet=document.sheet, encoding=document.encoding),
                patience=self._settings.patience,
                fingerprint=digest,
                link=f"{public}/uploads/{named}" if public else None,
                notices=True,
            )
        except ValidationError as error:
            raise invalid(error, within=0) from error


def _refuse_other(run: str, digest: str | None, document: MessagedDocument) -> None:
    if digest not in (None, document.origin.digest):
        raise RefusedMessage(
            KEY_REUSED,
            f"{run} was started by a message with other content: this message was not used; send "
            "it again with a task that was not used before",
        )


def _details(document: MessagedDocument) -> str:
    lines = [
        f"Task {document.task} of project {document.project}",
        f"Blob {printable(document.blob_name)}",
        f"Queue {document.origin.queue}",
    ]
    if document.origin.message_id is not None:
        lines.append(f"Message id {printable(document.origin.message_id)[:128]}")
    if document.unknown_fields:
        lines.append(f"Fields that are not used: {', '.join(document.unknown_fields)}")
    return "; ".join(lines)[:_DETAILS]


def _numbers(document: MessagedDocument, wanted: set[str]) -> dict[str, int]:
    """What the rows of a document belong to.

    Raises:
        RefusedMessage: A part is missing, is no number, or is one too many.
    """
    for name in sorted(wanted | document.scope.keys()):
        given = document.scope.get(name)
        if name not in wanted:
            known = " and ".join(sorted(wanted))
            reason = f"rows of {document.type} are told apart by {known}; leave this out"
        elif given is None:
            reason = f"rows of {document.type} need it; say which one"
        elif not (given.isascii() and given.isdigit() and 0 < int(given) <= 2**53):
            reason = f"{given[:50]!r} is no id; give its number"
        else:
            continue
        raise RefusedMessage(INVALID_MESSAGE, f"scope.{name}: {reason}")
    return {name: int(document.scope[name]) for name in wanted}
