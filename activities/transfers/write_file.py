"""The files of a run to a partner, and calls to its server."""

import json
import unicodedata
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import cast
from urllib.parse import quote

from temporalio import activity

from activities.shared.failures import Heartbeater, translate_failures
from activities.transfers.endpoints import (
    EndpointPorts,
    NotedNamings,
    StepFiles,
    once,
    opened,
    progress_of,
    shown,
    with_attempt_limit,
)
from adapters.ports.places import Calls, PartnerAway, Place, PlaceError, Progress, Written
from workflows.shared.errors import RuleViolation
from workflows.transfers.partners import Partner, PlaceKind
from workflows.transfers.paths import printable
from workflows.transfers.receipts import ReceiptFile
from workflows.transfers.runs import ActionInput, ActionResult, StagedFile
from workflows.transfers.settings import (
    CallHttp,
    Overwrite,
    WriteFile,
    fill_name,
    names_file,
    resolved_text,
)


class FileWriting:
    """Writes files.

    Args:
        ports: Partners, staged bytes and notes.
    """

    def __init__(self, ports: EndpointPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.write_file")
    @translate_failures
    async def write_file(self, order: ActionInput) -> ActionResult:
        """Write every file of a run; what an earlier attempt has written is not written again.

        Raises:
            NameTaken: A name is taken by another file, which may not be replaced.
            NameRefused: The endpoint cannot hold a name.
            RuleViolation: Two files would get the same name.
            WorkersLost: It has lost too many workers in a row.
        """
        async with with_attempt_limit(order) as beats:
            return await self._write_all(order, beats)

    async def _write_all(self, order: ActionInput, beats: Heartbeater) -> ActionResult:
        action = _action(order)
        step = StepFiles(self._ports.staging, order)
        files = await step.files(order.files)
        paths = _paths(action, order.names["path"], files)
        lines: list[ReceiptFile] = []
        remarks: list[str] = [*_alike(action, paths)]
        end = opened(self._ports.places, self._ports.partners, action.partner)
        async with end as (partner, place):
            for number, (file, path) in enumerate(zip(files, paths, strict=True)):
                try:
                    progress = progress_of(beats, number)
                    written = await self._write(order, place, number, file, path, progress)
                except PlaceError as error:
                    if len(files) == 1:
                        raise
                    raise PlaceError(
                        f"{number} of {len(files)} files are written, and the next is not: {error}"
                    ) from error
                lines.append(_line(partner, file, written))
                remarks += [f"{printable(file.name)}: {remark}" for remark in written.remarks]
        if not files:
            remarks.append("there was no file to write")
        return await step.result(
            order.files,
            lines,
            self._ports.now(),
            remarks=remarks,
            guarantee="; ".join(dict.fromkeys(line.guarantee or "" for line in lines))[:100]
            or None,
        )

    async def _write(
        self,
        order: ActionInput,
        place: Place,
        number: int,
        file: StagedFile,
        path: str,
        progress: Progress,
    ) -> Written:
        action, run = _action(order), order.job.transfer_id
        if file.blob.sha256 is None:
            raise RuleViolation(f"the hash of {printable(file.name)} is not known")
        name = f"write-{order.index}-{number}"
        return await place.write(
            self._ports.staging.read(file.blob),
            path,
            size=file.blob.size,
            sha256=file.blob.sha256,
            overwrite=action.overwrite,
            verify=action.verify,
            owner=f"{run}/{name}",
            mode=None if action.mode is None else int(action.mode, 8),
            changed=file.source_changed if action.keep_time else None,
            progress=progress,
            namings=NotedNamings(self._ports.notes, run, name),
        )


def _paths(action: WriteFile, template: str, files: Sequence[StagedFile]) -> Sequence[str]:
    """Where each file goes."""
    paths = [fill_name(template, file.name) for file in files]
    if len(set(paths)) < len(paths) and action.overwrite is not Overwrite.NUMBER:
        twice = next(path for path in paths if paths.count(path) > 1)
        raise RuleViolation(
            f"{paths.count(twice)} files would be written as {printable(twice)}; "
            "`{name}` in `Path` keeps them apart"
        )
    return paths


def _alike(action: WriteFile, paths: Sequence[str]) -> Iterator[str]:
    """Remarks on paths that some endpoints take for one, where the last file replaces the others.

    Otherwise the endpoint says that the name is taken.
    """
    known: dict[str, str] = {}
    for path in paths if action.overwrite is Overwrite.REPLACE else ():
        other = known.setdefault(unicodedata.normalize("NFC", path).casefold(), path)
        if other != path:
            yield (
                f"{printable(path)} and {printable(other)} differ in case or in the encoding of "
                "accents alone: where the endpoint takes them for one name, it has the last one "
                "only"
            )


def _line(partner: Partner, file: StagedFile, written: Written) -> ReceiptFile:
    return ReceiptFile(
        name=file.name,
        place=shown(partner, written.entry.path),
        size=file.blob.size,
        sha256_before=file.blob.sha256,
        sha256_after=file.blob.sha256,
        guarantee=written.guarantee[:100],
    )


def _action(order: ActionInput) -> WriteFile:
    assert isinstance(order.action, WriteFile)
    return order.action


_AWAY = (500, 502, 503, 504)
_REFUSED = (401, 403)
_HEADERS = "headers."


class HttpCalling:
    """Calls partners.

    Args:
        ports: Partners and staged bytes.
    """

    def __init__(self, ports: EndpointPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.call_http")
    @translate_failures
    async def call_http(self, order: ActionInput) -> ActionResult:
        """Send one request; every attempt has the same idempotency key.

        Raises:
            PlaceError: The server's answer is none of those that the action accepts.
            PartnerAway: It is in trouble, or does not accept our credentials.
            RuleViolation: The partner is not a server, or the run has not the one file to be sent.
            WorkersLost: It has lost too many workers in a row.
        """
        async with with_attempt_limit(order):
            return await self._call(order)

    async def _call(self, order: ActionInput) -> ActionResult:
        action = _call(order)
        step = StepFiles(self._ports.staging, order)
        files = await step.files(order.files)
        body, size = self._body(order, files)
        names = _names(order, files)
        end = opened(self._ports.places, self._ports.partners, action.partner)
        async with end as (partner, place):
            if partner.kind is not PlaceKind.HTTPS:
                raise RuleViolation(f"{partner.name} is not an HTTPS server, but {partner.kind}")
            answer = await cast(Calls, place).call(
                action.method, names["path"], _headers(order, names), body, size
            )
            if answer.status in _REFUSED and answer.status not in action.succeeds:
                # Where its root folder refuses us too, no call of any run can succeed.
                await place.ping()
        if answer.status not in action.succeeds:
            text = f"{action.partner} answered {answer.status} to {action.method}"
            if answer.status in _AWAY:
                raise PartnerAway(action.partner, text)
            raise PlaceError(f"{text}: {answer.text[:200]}")
        line = ReceiptFile(
            name=f"{action.method} {answer.status}"[:1_024],
            place=shown(partner, names["path"].partition("?")[0].lstrip("/")),
            size=size,
            verdict=f"answered {answer.status}",
        )
        return await step.result(order.files, [line], self._ports.now())

    def _body(
        self, order: ActionInput, files: Sequence[StagedFile]
    ) -> tuple[AsyncIterator[bytes] | None, int]:
        """The bytes that are sent, and how many they are."""
        kind = _call(order).body
        if kind == "none":
            return None, 0
        if kind == "file":
            if len(files) != 1:
                raise RuleViolation(
                    f"one file can be sent with a call, and the run has {len(files)}"
                )
            return self._ports.staging.read(files[0].blob), files[0].blob.size
        text = json.dumps(_summary(order, files)).encode()
        return once(text), len(text)


def _summary(order: ActionInput, files: Sequence[StagedFile]) -> dict[str, object]:
    """What the partner is sent about a transfer."""
    event = order.job.event
    return {
        "transfer": order.job.transfer_id,
        "event": {
            "id": event.id,
            "source": event.source,
            "type": event.type,
            "subject": event.subject,
            "accountId": event.account_id,
        },
        "files": [
            {"name": file.name, "size": file.blob.size, "sha256": file.blob.sha256}
            for file in files
        ],
        "previous": order.previous,
    }


def _names(order: ActionInput, files: Sequence[StagedFile]) -> dict[str, str]:
    """Its templates, with the name of the file.

    Raises:
        RuleViolation: One names the file, and the run has not one.
    """
    if len(files) == 1:
        own = files[0].name
        return {
            field: fill_name(text, quote(own, safe="") if field == "path" else own)
            for field, text in order.names.items()
        }
    if field := next((field for field, text in order.names.items() if names_file(text)), None):
        raise RuleViolation(f"{field} names the file, and the run has {len(files)}")
    return {field: resolved_text(text) for field, text in order.names.items()}


def _headers(order: ActionInput, names: Mapping[str, str]) -> dict[str, str]:
    action = _call(order)
    given = {
        name.removeprefix(_HEADERS): value
        for name, value in names.items()
        if name.startswith(_HEADERS)
    }
    for name, value in given.items():
        if not (value.isascii() and value.isprintable()):
            raise RuleViolation(f"the header {name} holds what headers cannot")
    if action.body == "receipt":
        given.setdefault("Content-Type", "application/json")
    if action.idempotency_header is not None:
        given[action.idempotency_header] = f"{order.job.transfer_id}-{order.index}"
    return given


def _call(order: ActionInput) -> CallHttp:
    assert isinstance(order.action, CallHttp)
    return order.action
