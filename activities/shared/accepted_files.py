"""Accepted rows as a file in the blob store, and the call that tells who loads them."""

import hashlib
import json
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, cast

from temporalio import activity

from activities.shared.failures import WorkerThread, from_thread
from activities.shared.scratch import scratch_folder
from adapters.ports.blobs import Blobs
from adapters.ports.errors import Denied, NotYet, PortError, Throttled, Unavailable
from adapters.signed_webhook import SignedWebhook
from adapters.types.tables import defaults_of_new
from workflows.shared.contracts import BlobRef
from workflows.shared.declared_fields import DeclaredTarget
from workflows.shared.declared_types import OTHER, DeclaredType
from workflows.shared.fields import ColumnKind, FieldSpec

_EVENT: Final = "rows.accepted"
_LONGEST_PAUSE: Final = 600.0


Pages = AsyncGenerator[tuple[Sequence[str], Sequence[Sequence[Any]]]]
"""Accepted rows, a page at a time: names of their values, and the rows."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """What an import hands over as a file.

    Attributes:
        run: The import, as its receiver knows it.
        place: Of the file in the blob store, without its ending; the same for every attempt.
        declared: Its type, whose target is a file.
        fields: How each field of the type is read.
        scope: Values that all rows share.
        identity: Of the document and the message.
        about: Further facts for the receiver.
    """

    run: str
    place: str
    declared: DeclaredType
    fields: Sequence[FieldSpec]
    scope: Mapping[str, str]
    identity: str
    about: Mapping[str, Any]

    @property
    def target(self) -> DeclaredTarget:
        """What the type says of the file."""
        assert self.declared.target is not None
        return self.declared.target

    @property
    def format(self) -> str:
        """Of the file."""
        return str(self.target.file)

    @property
    def name(self) -> str:
        """Of the file in the blob store."""
        return f"{self.place}.{self.format}"

    @property
    def columns(self) -> Sequence[FieldSpec]:
        """Columns of the file: the scope, every field, and what means none if it is kept."""
        shared = [FieldSpec(name, ColumnKind.TEXT) for name in self.declared.scope]
        is_kept = self.declared.unmapped == "keep"
        return [*shared, *self.fields, *([FieldSpec(OTHER, ColumnKind.TEXT)] if is_kept else [])]


class AcceptedFiles:
    """Writes accepted rows into files, and tells receivers of them.

    Args:
        blobs: Where files go.
        scratch: Folder for temporary files.
        receivers: Name of each to who it is; None: no receiver is notified, as in a dry run.
    """

    def __init__(
        self, blobs: Blobs, scratch: Path, receivers: Mapping[str, SignedWebhook] | None
    ) -> None:
        self._blobs = blobs
        self._scratch = scratch
        self._receivers = receivers

    async def write(self, accepted: Accepted, pages: Pages) -> tuple[BlobRef, int]:
        """Write rows into the file; which it is, and how many they are.

        A second run writes the same bytes to the same place.
        """
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
        self, accepted: Accepted, file: BlobRef, counts: Mapping[str, int], report: BlobRef | None
    ) -> None:
        """Tell the receiver of the type; the id of the message is that of the work.

        Raises:
            NotYet: The receiver does not answer, or asks for a pause.
            Denied: It refuses the message, or the settings do not name it.
        """
        name = accepted.target.webhook
        if name is None or self._receivers is None:
            return
        if name not in self._receivers:
            raise Denied(
                f"DOCFLOW_TYPE_WEBHOOKS has no {name!r}, which the type names as its webhook; "
                "add it, restart the workers, and retry"
            )
        body = {
            "type": _EVENT,
            "data": {
                "import_id": accepted.run,
                **accepted.about,
                "document_type": accepted.declared.name,
                "type_digest": accepted.declared.digest,
                "scope": dict(accepted.scope),
                "format": accepted.format,
                "file": _reference(file),
                "counts": dict(counts),
                # Its bytes have a time in them, and are written again when the import ends.
                "report": None if report is None else report.name,
            },
        }
        id = (
            "msg_"
            + hashlib.sha256(f"{accepted.run}\n{accepted.identity}".encode()).hexdigest()[:32]
        )
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


async def _placed(pages: Pages, accepted: Accepted) -> AsyncIterator[Sequence[tuple[Any, ...]]]:
    """Rows with a value for each column of the file."""
    defaults = defaults_of_new(accepted.declared)
    async for columns, rows in pages:
        places = {name: place for place, name in enumerate(columns)}
        wanted = [(places.get(each.name), defaults.get(each.name)) for each in accepted.columns]
        yield [
            tuple(default if place is None else row[place] for place, default in wanted)
            for row in rows
        ]


def _write(accepted: Accepted, rows: Iterator[tuple[Any, ...]], path: Path) -> int:
    from adapters.files.tables.workbooks import write_csv, write_parquet

    match accepted.format:
        case "parquet":
            return write_parquet(accepted.columns, map(_flat, rows), path)
        case "csv":
            with path.open("wb") as file:
                return write_csv(accepted.columns, map(_flat, rows), file)
        case _:
            return _write_lines(accepted, rows, path)


def _write_lines(accepted: Accepted, rows: Iterator[tuple[Any, ...]], path: Path) -> int:
    names, count = [field.name for field in accepted.columns], 0
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
