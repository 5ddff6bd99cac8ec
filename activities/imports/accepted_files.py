"""Accepted rows as a file in the blob store, and the call that tells who loads them."""

import hashlib
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

from temporalio import activity

from activities.imports.store import SqlImportStore
from activities.shared.failures import WorkerThread, from_thread
from activities.shared.scratch import scratch_folder
from adapters.ports.blobs import Blobs
from adapters.ports.errors import Denied, NotYet, PortError, Throttled, Unavailable
from adapters.signed_webhook import SignedWebhook
from workflows.imports.messages import encoded, workflow_id
from workflows.imports.runs import Counts, TaskKey
from workflows.imports.types import TableSpec
from workflows.shared.contracts import BlobRef
from workflows.shared.declared_types import OTHER
from workflows.shared.fields import ColumnKind, FieldSpec

_EVENT: Final = "rows.accepted"
_LONGEST_PAUSE: Final = 600.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """What an import hands over as a file.

    Attributes:
        key: The import.
        spec: Its type, whose target is a file.
        scope: Values that all rows share.
        identity: Of the document and the message.
    """

    key: TaskKey
    spec: TableSpec
    scope: Mapping[str, str]
    identity: str

    @property
    def format(self) -> str:
        """Of the file."""
        declared = self.spec.declared
        assert declared is not None
        assert declared.target is not None
        return str(declared.target.file)

    @property
    def name(self) -> str:
        """Of the file in the blob store; the same for every attempt."""
        return file_name(self.key, self.format)

    @property
    def fields(self) -> Sequence[FieldSpec]:
        """Columns of the file: the scope, every field, and what means none if it is kept."""
        shared = [FieldSpec(name, ColumnKind.TEXT) for name in self.spec.scope]
        kept = [FieldSpec(OTHER, ColumnKind.TEXT)] if self.spec.unmapped == "keep" else []
        return [*shared, *self.spec.fields, *kept]


def file_name(key: TaskKey, format: str) -> str:
    """Where the accepted rows of an import are in the blob store."""
    return f"accepted/{encoded(key.project_id)}/{encoded(key.task_id)}.{format}"


class AcceptedFiles:
    """Writes accepted rows into files, and tells receivers of them.

    Args:
        store: Has the rows.
        blobs: Where files go.
        scratch: Folder for temporary files.
        receivers: Name of each to who it is; None: no receiver is notified, as in a dry run.
    """

    def __init__(
        self,
        store: SqlImportStore,
        blobs: Blobs,
        scratch: Path,
        receivers: Mapping[str, SignedWebhook] | None,
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._scratch = scratch
        self._receivers = receivers

    async def write(self, accepted: Accepted) -> tuple[BlobRef, int]:
        """Write the staged rows into the file; which it is, and how many they are.

        A second run writes the same bytes to the same place.
        """
        pages = self._store.staged(accepted.key, accepted.spec.table)
        with scratch_folder(self._scratch) as folder:
            path = folder / "accepted"
            stopped = threading.Event()
            async with aclosing(pages), WorkerThread() as thread:
                rows = from_thread(_placed(pages, accepted), stopped)
                try:
                    count = await thread.run(lambda: _write(accepted, rows, path))
                finally:
                    stopped.set()
            return await self._blobs.upload(path, accepted.name), count

    async def tell(
        self, accepted: Accepted, file: BlobRef, counts: Counts, report: BlobRef | None
    ) -> None:
        """Tell the receiver of the type; the id of the message is that of the work.

        Raises:
            NotYet: The receiver does not answer, or asks for a pause.
            Denied: It refuses the message, or the settings do not name it.
        """
        declared = accepted.spec.declared
        assert declared is not None
        assert declared.target is not None
        name = declared.target.webhook
        if name is None or self._receivers is None:
            return
        if name not in self._receivers:
            raise Denied(
                f"DOCFLOW_TYPE_WEBHOOKS has no {name!r}, which the type names as its webhook; "
                "add it, restart the workers, and retry"
            )
        run = workflow_id(accepted.key.project_id, accepted.key.task_id)
        body = {
            "type": _EVENT,
            "data": {
                "import_id": run,
                "project_id": accepted.key.project_id,
                "task_id": accepted.key.task_id,
                "document_type": declared.name,
                "type_digest": declared.digest,
                "scope": dict(accepted.scope),
                "format": accepted.format,
                "file": _reference(file),
                "counts": {"accepted": counts.created, "rejected": counts.rejected},
                # Its bytes have a time in them, and are written again when the import ends.
                "report": None if report is None else report.name,
            },
        }
        id = "msg_" + hashlib.sha256(f"{run}\n{accepted.identity}".encode()).hexdigest()[:32]
        try:
            await self._receivers[name].post(id, json.dumps(body, ensure_ascii=False).encode())
        except Throttled as error:
            raise NotYet(str(error), error.retry_after or _pause()) from error
        except Unavailable as error:
            raise NotYet(str(error), _pause()) from error
        except PortError as error:
            raise Denied(
                f"{error}: the rows are in {file.name}, and {name} was not notified; correct the "
                "receiver or DOCFLOW_TYPE_WEBHOOKS, and retry"
            ) from error


def _pause() -> float:
    """Seconds until the next attempt: 10, 20, 40 and so on."""
    return min(_LONGEST_PAUSE, 5.0 * 2 ** min(activity.info().attempt, 10))


def _reference(blob: BlobRef) -> Mapping[str, Any]:
    return {"name": blob.name, "size": blob.size, "sha256": blob.sha256}


async def _placed(
    pages: AsyncIterator[tuple[Sequence[str], Sequence[Sequence[Any]]]], accepted: Accepted
) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
    """Rows with a value for each column of the file."""
    async for columns, rows in pages:
        places = {name: place for place, name in enumerate(columns)}
        wanted = [places.get(field.name) for field in accepted.fields]
        yield [tuple(None if place is None else row[place] for place in wanted) for row in rows]


def _write(accepted: Accepted, rows: Iterator[tuple[Any, ...]], path: Path) -> int:
    from adapters.files.tables.workbooks import write_csv, write_parquet

    match accepted.format:
        case "parquet":
            return write_parquet(accepted.fields, map(_flat, rows), path)
        case "csv":
            with path.open("wb") as file:
                return write_csv(accepted.fields, map(_flat, rows), file)
        case _:
            return _write_lines(accepted, rows, path)


def _write_lines(accepted: Accepted, rows: Iterator[tuple[Any, ...]], path: Path) -> int:
    names, count = [field.name for field in accepted.fields], 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last one is their number
            values = {name: _plain(value) for name, value in zip(names, row, strict=True)}
            file.write(json.dumps(values, ensure_ascii=False) + "\n")
    return count


def _flat(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_text(value) if isinstance(value, dict) else value for value in row)


def _plain(value: Any) -> Any:
    """A value in JSON: exact numbers, days and moments are texts."""
    is_json = value is None or isinstance(value, str | bool | int | dict)
    return cast("Any", value) if is_json else _text(value)


def _text(value: Any) -> str:
    match value:
        case Decimal():
            return f"{value.normalize():f}"
        case datetime() | date() | time():
            return value.isoformat()
        case dict():
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
        case _:
            return str(value)
