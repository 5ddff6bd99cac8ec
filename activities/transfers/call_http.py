"""`transfers.call_http`: a call to a partner's server."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import cast
from urllib.parse import quote

from temporalio import activity

from activities.failures import translate_failures
from activities.transfers.endpoints import EndpointPorts, opened, shown
from activities.transfers.step_files import StepFiles, bounded, once
from adapters.ports.places import Calls, PartnerAway, PlaceError
from contracts.transfers import (
    ActionOrder,
    ActionResult,
    CallHttp,
    PlaceKind,
    ReceiptFile,
    StagedFile,
)
from domain.errors import RuleViolation
from domain.transfers.templates import filled, names_file, plain

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
    async def call_http(self, order: ActionOrder) -> ActionResult:
        """Send one request; every attempt has the same idempotency key.

        Raises:
            PlaceError: The server's answer is none of those that the action accepts.
            PartnerAway: It is in trouble, or does not accept our credentials.
            RuleViolation: The partner is not a server, or the run has not the one file to be sent.
            WorkersLost: It has lost too many workers in a row.
        """
        async with bounded(order):
            return await self._call(order)

    async def _call(self, order: ActionOrder) -> ActionResult:
        action = _action(order)
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
        self, order: ActionOrder, files: Sequence[StagedFile]
    ) -> tuple[AsyncIterator[bytes] | None, int]:
        """The bytes that are sent, and how many they are."""
        kind = _action(order).body
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


def _summary(order: ActionOrder, files: Sequence[StagedFile]) -> dict[str, object]:
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


def _names(order: ActionOrder, files: Sequence[StagedFile]) -> dict[str, str]:
    """Its templates, with the name of the file.

    Raises:
        RuleViolation: One names the file, and the run has not one.
    """
    if len(files) == 1:
        own = files[0].name
        return {
            field: filled(text, quote(own, safe="") if field == "path" else own)
            for field, text in order.names.items()
        }
    if field := next((field for field, text in order.names.items() if names_file(text)), None):
        raise RuleViolation(f"{field} names the file, and the run has {len(files)}")
    return {field: plain(text) for field, text in order.names.items()}


def _headers(order: ActionOrder, names: Mapping[str, str]) -> dict[str, str]:
    action = _action(order)
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


def _action(order: ActionOrder) -> CallHttp:
    assert isinstance(order.action, CallHttp)
    return order.action
