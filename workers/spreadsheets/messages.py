"""Documents of types about people and clubs that messages bring.

Each becomes an upload that goes through by itself and asks a person about what is not clear.
"""

import secrets
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound
from adapters.types.files import club_types, people_types
from workers.shared.register import Context, MessagedDocument
from workers.shared.services.bodies import INVALID_MESSAGE, RefusedMessage
from workers.spreadsheets.resources import spreadsheet_resources
from workers.spreadsheets.runs import SpreadsheetRuns
from workers.spreadsheets.settings import SpreadsheetSettings
from workflows.shared.contracts import MEMO
from workflows.shared.declared_types import ORGANISATION, DeclaredType
from workflows.spreadsheets.mappings import Layout
from workflows.spreadsheets.runs import SpreadsheetInput, workflow_id

_TASKS: Final = uuid.UUID("0b8a6b1d-7d0e-4c55-9a3e-5d0f5a1f6c27")
"""Namespace of import uuids that stand for the work of a message."""
_RUNS: Final = 20
"""Runs of one message, each after one that was terminated."""
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
        SpreadsheetRuns(context.client),
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
        runs: SpreadsheetRuns,
        views: SqlSpreadsheetViews,
        store: SqlSpreadsheetStore,
        blobs: Blobs,
        settings: SpreadsheetSettings,
    ) -> None:
        self._runs = runs
        self._views = views
        self._store = store
        self._blobs = blobs
        self._settings = settings

    def ids(self, document: MessagedDocument) -> Iterator[str]:
        """See `DocumentRuns.ids`."""
        found = _TASKS
        for _ in range(_RUNS):
            found = uuid.uuid5(found, document.key)
            yield workflow_id(str(found))

    async def start(self, id: str, document: MessagedDocument) -> bool:
        """Start a run; see `DocumentRuns.start`.

        It reads a copy: the file of the sender is not removed with the import. The note of the copy
        is written before it, as for any upload.
        """
        named = id.rpartition("/")[2]
        (owner,) = _TYPES[document.type].scope
        numbers = _numbers(document, {ORGANISATION, owner})
        copy = f"spreadsheets/{named}/{secrets.token_hex(16)}"
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
        public = self._settings.public_url
        order = SpreadsheetInput(
            uuid=named,
            organisation_id=numbers[ORGANISATION],
            import_type=document.type,
            context_id=None if owner == ORGANISATION else numbers[owner],
            type_digest=_TYPES[document.type].digest,
            source=source,
            filename=document.filename,
            by=_SENDER,
            auto_start=True,
            layout=Layout(sheet=document.sheet, encoding=document.encoding),
            patience=self._settings.patience,
            link=f"{public}/imports/{named}" if public else None,
            notices=True,
        )
        is_new = await self._runs.start_once(order, {MEMO: document.digest})
        if not is_new:
            await self._blobs.delete(copy)
        return is_new


def _numbers(document: MessagedDocument, wanted: set[str]) -> dict[str, int]:
    """What the rows of a document belong to.

    Raises:
        RefusedMessage: A part is missing, is no number, or is one too many.
    """
    for name in sorted(wanted | document.scope.keys()):
        given = document.scope.get(name)
        if name not in wanted:
            reason = f"rows of {document.type} take none; leave it out"
        elif given is None:
            reason = f"rows of {document.type} need it; say which one"
        elif not (given.isascii() and given.isdigit() and 0 < int(given) <= 2**53):
            reason = f"{given[:50]!r} is no id; give its number"
        else:
            continue
        raise RefusedMessage(INVALID_MESSAGE, f"scope.{name}: {reason}")
    return {name: int(document.scope[name]) for name in wanted}
