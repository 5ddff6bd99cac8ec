"""From an upload, a file and its fields, to a run."""

import asyncio
import hashlib
import logging
import secrets
import uuid as uuids
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from activities.shared.records import reason_of
from activities.spreadsheets.records import SpreadsheetRow
from activities.spreadsheets.sheet_types import SheetTypes
from activities.spreadsheets.store import SqlSpreadsheetStore
from activities.spreadsheets.types.base import SheetType
from activities.spreadsheets.views import SqlSpreadsheetViews
from adapters.ports.blobs import Blobs
from adapters.ports.errors import BlobNotFound, PortError
from workers.shared.services.errors import (
    Forbidden,
    Gone,
    Refused,
    TemporalUnavailable,
    TooManyRequests,
)
from workers.shared.services.identity import MAPPER, Identity, require_import, require_role
from workers.shared.services.quotas import Quotas
from workers.spreadsheets.runs import SpreadsheetRuns, StartedBefore
from workers.spreadsheets.settings import SpreadsheetSettings
from workers.spreadsheets.upload_form import Naming, Upload, UploadFields, read_fields
from workflows.shared.contracts import BlobRef
from workflows.shared.declared_types import ORGANISATION
from workflows.shared.errors import RuleViolation
from workflows.spreadsheets.mappings import FINAL, SpreadsheetState
from workflows.spreadsheets.runs import SpreadsheetInput, workflow_id

logger = logging.getLogger(__name__)

_WINDOW: Final = timedelta(minutes=1)
"""What uploads of one person are counted over."""
_LONGEST_KEY: Final = 255
_QUICK_SECONDS: Final = 0.5
"""How long an answer waits for the columns of a file."""
_LOOK_SECONDS: Final = 0.03
_LATER: Final = ("no_header", "review", "scope")
"""Fields that came with later releases."""
_KEYS: Final = uuids.UUID("5b0d0f3e-7b1c-4c0f-9f1e-3a2f4c1d6e8b")
"""Namespace of import uuids that stand for an idempotency key."""


@dataclass(frozen=True)
class Uploaded:
    """The import of an upload."""

    row: SpreadsheetRow
    is_new: bool
    """False: a request with its key came before."""


class SpreadsheetUploads:
    """Takes uploads in."""

    def __init__(
        self,
        runs: SpreadsheetRuns,
        views: SqlSpreadsheetViews,
        store: SqlSpreadsheetStore,
        blobs: Blobs,
        types: SheetTypes,
        settings: SpreadsheetSettings,
        quotas: Quotas,
    ) -> None:
        self._quotas = quotas
        self._runs = runs
        self._views = views
        self._store = store
        self._blobs = blobs
        self._types = types
        self._settings = settings

    async def create(
        self, who: Identity, upload: Upload, key: str | None, naming: Naming
    ) -> Uploaded:
        """Stream a file into the blob store and start its import; see `SpreadsheetService.create`.

        The note of an upload is written before the first byte, and goes when the import is there:
        whatever breaks in between, the purge finds the file by it.
        """
        if key is not None and not (0 < len(key) <= _LONGEST_KEY and key.isprintable()):
            raise Refused(f"Idempotency-Key must have 1 to {_LONGEST_KEY} printable characters")
        uuid, name = _new_place()
        await self._admit(who, uuid, name)
        await upload.open()
        source = await self._blobs.write(name, upload.file())
        try:
            fields = read_fields(await upload.finish(), naming)
            order = await self._order(who, uuid, source, upload.filename, fields, key, naming)
        except BaseException:
            await self._discard(name)
            raise
        return await self._start(who, order)

    async def create_from_blob(
        self, who: Identity, blob: str, filename: str, fields: UploadFields
    ) -> SpreadsheetRow:
        """Start the import of a copy of a stored file; see `SpreadsheetService.create`.

        Args:
            who: Who asks.
            blob: The file.
            filename: As people know it.
            fields: What it is.

        Raises:
            Refused: There is no such file as well.
        """
        uuid, name = _new_place()
        await self._admit(who, uuid, name)
        try:
            source = await self._blobs.copy(blob, name)
            order = await self._order(who, uuid, source, filename, fields, None, Naming.SNAKE)
        except BlobNotFound as error:
            await self._store.forget_upload(name)
            raise Refused(f"blob_name: there is no {blob}; store the file first") from error
        except BaseException:
            await self._discard(name)
            raise
        return (await self._start(who, order)).row

    async def _admit(self, who: Identity, uuid: str, name: str) -> None:
        """Take note of an upload, and count it: noted first, so that uploads at once count too."""
        now = datetime.now(UTC)
        await self._views.note_upload(uuid, name, who.subject, now)
        most = self._settings.create_per_minute
        if await self._views.created_since(who.subject, now - _WINDOW) > most:
            await self._store.forget_upload(name)
            raise TooManyRequests(
                f"at most {most} uploads a minute; try again later",
                retry_after=int(_WINDOW.total_seconds()),
            )

    async def _order(
        self,
        who: Identity,
        uuid: str,
        source: BlobRef,
        filename: str,
        fields: UploadFields,
        key: str | None,
        naming: Naming,
    ) -> SpreadsheetInput:
        organisation, kind, scope = await self.check(who, fields, naming)
        fingerprint = None
        if key is not None:
            uuid = await self._uuid_of(f"{organisation}\n{who.subject}\n{key}", organisation)
            fingerprint = _fingerprint(source, filename, fields)
            # An import that opens removes the notes of its uuid: this one belongs to it now.
            await self._store.forget_upload(source.name)
            await self._views.note_upload(uuid, source.name, who.subject, datetime.now(UTC))
        public = self._settings.public_url
        return SpreadsheetInput(
            uuid=uuid,
            organisation_id=organisation,
            import_type=fields.import_type,
            context_id=fields.context_id,
            type_digest=kind.declared.digest if kind.declared else None,
            scope=scope,
            source=source,
            filename=filename,
            by=who.subject,
            notify=who.email,
            auto_start=fields.auto_start,
            dry_run=fields.dry_run,
            review=fields.review,
            layout=fields.layout(),
            patience=self._settings.patience,
            fingerprint=fingerprint,
            link=f"{public}/uploads/{uuid}" if public else None,
            notices=True,
            # People of another site teach those of the organisation nothing.
            remembers=who.upload is None,
        )

    async def check(
        self, who: Identity, fields: UploadFields, naming: Naming
    ) -> tuple[int, SheetType, dict[str, str]]:
        """See that somebody may make an upload; its organisation, type and scope.

        Raises:
            Forbidden: Their roles, or their upload token, do not allow it.
            Refused: A field is missing or wrong.
        """
        grant = who.upload
        if grant is not None and (fields.import_type, fields.context_id, fields.scope) != (
            *(grant.import_type, grant.context_id),
            grant.scope,
        ):
            raise Forbidden(
                "your upload token is for another upload: send its import_type, context_id and "
                "scope, and no others"
            )
        organisation = self.organisation(who, fields.organisation_id, naming)
        kind = await self._kind(who, fields, organisation, naming)
        await self._check_context(kind, fields, organisation, naming)
        return organisation, kind, _scope(kind, fields)

    async def _uuid_of(self, key: str, organisation: int) -> str:
        """The import that a key stands for: another one after each whose run was terminated."""
        uuid = str(uuids.uuid5(_KEYS, key))
        while await self._is_terminated(await self._views.get(uuid, (organisation,))):
            uuid = str(uuids.uuid5(_KEYS, uuid))
        return uuid

    async def _is_terminated(self, row: SpreadsheetRow | None) -> bool:
        return row is not None and await is_terminated(row, self._runs, self._store)

    def organisation(self, who: Identity, wanted: int | None, naming: Naming = Naming.SNAKE) -> int:
        """The organisation of an upload: the one that is named, or the first where they may upload.

        Raises:
            Forbidden: Their roles there do not allow it.
            Refused: It is none of theirs, or they have none.
        """
        if not who.organisations:
            raise Refused("your token names no organisation to import for")
        organisation = wanted or next(iter(who.where(MAPPER)), who.organisations[0])
        if organisation not in who.organisations:
            field = naming("organisation_id")
            raise Refused(f"{field}: {organisation} is not one of your organisations")
        require_role(who, MAPPER, organisation)
        return organisation

    async def _kind(
        self, who: Identity, fields: UploadFields, organisation: int, naming: Naming
    ) -> SheetType:
        try:
            kind = await self._types.get(fields.import_type)
        except RuleViolation as error:
            raise Refused(f"{naming('import_type')}: {error}") from error
        require_import(who, organisation, await self._types.written_by(kind.name))
        return kind

    async def _check_context(
        self, kind: SheetType, fields: UploadFields, organisation: int, naming: Naming
    ) -> None:
        spec, field = kind.context, naming("context_id")
        if fields.context_id is None:
            if spec is not None and spec.required:
                raise Refused(f"{field}: {kind.title} needs one: {spec.title}")
            return
        if spec is None:
            raise Refused(f"{field}: {kind.title} takes none; leave it out")
        if not await self._store.context_exists(spec.table, fields.context_id, organisation):
            raise Refused(
                f"{field}: there is no {spec.title} {fields.context_id} in your organisation"
            )

    async def _start(self, who: Identity, order: SpreadsheetInput) -> Uploaded:
        if order.fingerprint is not None:
            before = await self._views.get(order.uuid, who.organisations)
            if before is not None:
                return Uploaded(await self._replay(order, before.fingerprint, before), is_new=False)
        try:
            await self._quotas.admit(order.organisation_id, order.source.size)
        except BaseException:
            await self._discard(order.source.name)
            raise
        try:
            await self._runs.start(order)
        except StartedBefore as started:
            return Uploaded(await self._replay(order, started.fingerprint, None), is_new=False)
        return Uploaded(await self._first_look(order), is_new=True)

    async def _first_look(self, order: SpreadsheetInput) -> SpreadsheetRow:
        """The import as it is once its columns are known, or half a second later.

        The row is opened here too, so that the import can be seen while no worker is there.
        """
        await self._store.open(order, workflow_id(order.uuid), datetime.now(UTC))
        return await self._look(order, lambda row: row.state is not SpreadsheetState.UPLOADED)

    async def _look(
        self, order: SpreadsheetInput, enough: Callable[[SpreadsheetRow], bool]
    ) -> SpreadsheetRow:
        """Look at an import until there is enough to see, but not for long."""
        clock = asyncio.get_running_loop().time
        until = clock() + _QUICK_SECONDS
        while True:
            row = await self._views.get(order.uuid, (order.organisation_id,))
            if row is not None and (enough(row) or clock() > until):
                return row
            if clock() > until:
                raise TemporalUnavailable(
                    "the import was started, but cannot be seen yet; try again"
                )
            await asyncio.sleep(_LOOK_SECONDS)

    async def _replay(
        self, order: SpreadsheetInput, fingerprint: str | None, row: SpreadsheetRow | None
    ) -> SpreadsheetRow:
        """Answer a request whose key was used before, with the import that it made."""
        await self._discard(order.source.name)
        if row is not None and row.purged_at is not None:
            raise Gone("the import of this Idempotency-Key was removed after its retention")
        if fingerprint != order.fingerprint:
            logger.warning("the key of import %s came with another upload: refused", order.uuid)
            raise Refused(
                "this Idempotency-Key was used for another upload; take a new one for each"
            )
        # The request that won the race opens the row.
        return row or await self._look(order, lambda row: True)

    async def _discard(self, name: str) -> None:
        """Remove a file that no import will use; its note stays and counts as an upload."""
        try:
            await self._blobs.delete(name)
        except PortError as error:
            logger.warning("a refused upload is left to the purge: %s", error)


def _new_place() -> tuple[str, str]:
    """The uuid of an import, and the name of its file."""
    uuid = str(uuids.uuid4())
    return uuid, f"spreadsheets/{uuid}/{secrets.token_hex(16)}"


async def is_terminated(
    row: SpreadsheetRow, runs: SpreadsheetRuns, store: SqlSpreadsheetStore
) -> bool:
    """Whether the run of an import was terminated; its row is closed then."""
    if row.state in FINAL:
        return row.state is SpreadsheetState.TERMINATED
    run = workflow_id(row.uuid)
    end = await runs.ends.end(run)
    return end is not None and await store.terminate(run, reason_of(run, end))


def _scope(kind: SheetType, fields: UploadFields) -> dict[str, str]:
    """What all rows of an upload share.

    Raises:
        Refused: A part is missing, or one too many is given.
    """
    wanted = [name for name in kind.scope if name != ORGANISATION]
    for name in wanted:
        if name not in fields.scope:
            raise Refused(f"scope.{name}: {kind.title} needs it; say which one")
    for name in fields.scope:
        if name not in wanted:
            raise Refused(f"scope.{name}: {kind.title} takes none; leave it out")
    return dict(fields.scope)


def _fingerprint(source: BlobRef, filename: str, fields: UploadFields) -> str:
    digest = hashlib.sha256()
    # A key stays good across releases: what a former one did not know counts only when it is used.
    exclude = {name for name in _LATER if not getattr(fields, name)}
    for part in (source.sha256 or "", filename, fields.model_dump_json(exclude=exclude)):
        digest.update(f"{len(part)}:{part}".encode())
    return digest.hexdigest()
