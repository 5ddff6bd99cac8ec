"""`transfers.receive`, `transfers.route`, `transfers.record`: events, and states of transfers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from temporalio import activity

from activities.failures import translate_failures
from activities.transfers.route_cache import RouteCache
from adapters.ports import RejectionRecord, Unavailable
from adapters.ports.transfers import StartedJobs, StatusRow, TransferStore
from contracts.errors import KEY_REUSED
from contracts.transfers import (
    EventRoute,
    FileEventOrder,
    FileNotice,
    Reception,
    RouteOrder,
    StatusOrder,
    TransferStatus,
    file_job_id,
    transfer_workflow_id,
)
from domain.errors import RuleViolation
from domain.transfers.event_facts import file_of
from domain.transfers.events import NoEvent, read_event
from domain.transfers.queues import Queue
from domain.transfers.standing import standing

_UNKNOWN = "unknown"


@dataclass(frozen=True)
class ReceivingPorts:
    """What `Receiving` is given."""

    store: TransferStore
    routes: RouteCache
    queues: Mapping[str, Queue]
    """Queues that there are."""
    rejected: RejectionRecord
    jobs: StartedJobs


class Receiving:
    """Checks events, finds their routes, and writes the states of transfers.

    Args:
        ports: Where rows and rules are kept.
    """

    def __init__(self, ports: ReceivingPorts) -> None:
        self._ports = ports

    @activity.defn(name="transfers.receive")
    @translate_failures
    async def receive(self, order: FileEventOrder) -> Reception:
        """Check an event and find its route; a message that is none is recorded as rejected."""
        known = await self._ports.store.get(order.transfer_id)
        if known is not None and known.digest not in (None, order.digest):
            return await self._refuse_other(order, known)
        if known is not None and known.status is TransferStatus.SUCCEEDED:
            # Temporal has forgotten its run: a job of this one cannot have ended yet.
            reason = f"it was carried out before, and ended at {known.at:%Y-%m-%d %H:%M} UTC"
            return Reception(status=known.status, reason=reason)
        try:
            event = read_event(order.body, order.arrived)
        except NoEvent as error:
            return await self._reject(order, error)
        route = await self._route(event)
        status = TransferStatus.NO_ASSIGNED if route.queue is None else TransferStatus.ASSIGNED
        asked = RouteOrder(
            transfer_id=order.transfer_id, event=event, digest=order.digest, at=_now()
        )
        if not await self._routed(asked, route):
            return await self._refuse_late(order)
        return Reception(status=status, event=event, route=route)

    @activity.defn(name="transfers.route")
    @translate_failures
    async def route(self, order: RouteOrder) -> EventRoute:
        """Look again where an event goes, by rules that may have changed or by a person's word."""
        self._ports.routes.forget()
        if order.queue is None:
            route = await self._route(order.event)
        else:
            route = self._to(order.queue)
            if (problem := self._problem(order.queue)) is not None:
                route = EventRoute(problem=problem)
        await self._routed(order, route)
        return route

    @activity.defn(name="transfers.compare_job")
    @translate_failures
    async def compare_job(self, order: FileEventOrder) -> Reception:
        """See whether the job that has the id of an event was started by this event.

        Another one, as of a message that lay on a queue, keeps the id: this event is recorded as
        rejected, and the states of the transfer say so.

        Raises:
            RuleViolation: It is not known by what it was started.
        """
        digest = await self._ports.jobs.job_digest(order.transfer_id)
        if digest is None:
            raise RuleViolation(
                f"{file_job_id(order.transfer_id)} was started before, and it is not known by "
                "which event: look at it, then have it compared again or give this event up"
            )
        if digest == order.digest:
            return Reception(status=TransferStatus.ASSIGNED, reason="its job was started before")
        reason = (
            "another event with the source and id of this one has its job, as one that came by a "
            "queue: this one was not used; send it again with another id"
        )
        await self._ports.rejected.record(
            order.way_in, order.transfer_id, KEY_REUSED, reason, order.body.encode()
        )
        await self._ports.store.note(
            StatusRow(
                transfer_id=order.transfer_id,
                status=TransferStatus.FAILED,
                at=_now(),
                source=_UNKNOWN,
                event_id=order.transfer_id,
                reason=f"refused, by {order.way_in}: {reason}",
            )
        )
        return Reception(status=TransferStatus.FAILED, refused=reason, digest=digest)

    @activity.defn(name="transfers.record")
    @translate_failures
    async def record(self, order: StatusOrder) -> None:
        """Write that a transfer enters a state; a line of its trail, where it has another event."""
        row = _row(order)
        if not await self._ports.store.record(row):
            reason = f"of another event with its source and id: {order.reason or order.status}"
            await self._ports.store.note(replace(row, reason=reason[:500]))

    async def _route(self, event: FileNotice) -> EventRoute:
        table = await self._ports.routes.table()
        winner = table.find(event.key)
        if winner is None:
            # It looks at every rule: runs beside this one are served meanwhile.
            verdict = await asyncio.to_thread(table.explain, event.key)
            return EventRoute(others=verdict.others, rules=verdict.rules)
        if (problem := self._problem(winner.queue)) is not None:
            return EventRoute(rule=winner.rule, problem=problem)
        return self._to(winner.queue).model_copy(update={"rule": winner.rule})

    def _to(self, queue: str) -> EventRoute:
        known = self._ports.queues.get(queue)
        return EventRoute(queue=queue, priority=known and known.priority)

    def _problem(self, queue: str) -> str | None:
        """Why a queue cannot be used; None: it can."""
        if queue in self._ports.queues:
            return None
        return f"there is no queue {queue}; there are {', '.join(sorted(self._ports.queues))}"[:500]

    async def _routed(self, order: RouteOrder, route: EventRoute) -> bool:
        """Write where an event goes; False: the row is that of another event."""
        is_assigned = route.queue is not None
        rule = f"rule {route.rule} of queue {route.queue}" if route.rule else order.reason
        written = StatusOrder(
            transfer_id=order.transfer_id,
            status=TransferStatus.ASSIGNED if is_assigned else TransferStatus.NO_ASSIGNED,
            at=order.at,
            run=(file_job_id if is_assigned else transfer_workflow_id)(order.transfer_id),
            digest=order.digest,
            event=order.event,
            queue=route.queue,
            reason=rule if is_assigned else reason_of(route),
            by=order.by,
        )
        return await self._ports.store.record(_row(written))

    async def _reject(self, order: FileEventOrder, error: NoEvent) -> Reception:
        reason = str(error)
        written = StatusOrder(
            transfer_id=order.transfer_id,
            status=error.status,
            at=order.arrived,
            run=transfer_workflow_id(order.transfer_id),
            digest=order.digest,
            reason=reason,
        )
        if not await self._ports.store.record(_row(written)):
            return await self._refuse_late(order)
        await self._ports.rejected.record(
            order.way_in, order.transfer_id, error.status.value, reason, order.body.encode()
        )
        return Reception(status=error.status, reason=reason)

    async def _refuse_late(self, order: FileEventOrder) -> Reception:
        """Refuse an event when another one has come since its row was looked for."""
        known = await self._ports.store.get(order.transfer_id)
        if known is None:
            # Retention has removed it at this moment: the next attempt has the id for itself.
            raise Unavailable("the row of another event was removed meanwhile")
        return await self._refuse_other(order, known)

    async def _refuse_other(self, order: FileEventOrder, known: StatusRow) -> Reception:
        reason = (
            f"another event came with the source and id of this one, at {known.at:%Y-%m-%d %H:%M} "
            f"UTC, and {standing(known.status)}: this one was not used; send it again with another "
            "id"
        )
        await self._ports.rejected.record(
            order.way_in, order.transfer_id, KEY_REUSED, reason, order.body.encode()
        )
        return Reception(status=known.status, refused=reason, digest=known.digest)


def _row(order: StatusOrder) -> StatusRow:
    event = order.event
    return StatusRow(
        transfer_id=order.transfer_id,
        status=order.status,
        at=order.at,
        source=_UNKNOWN if event is None else event.source,
        event_id=order.transfer_id if event is None else event.id,
        account_id=event and event.account_id,
        type=event and event.type,
        subject=event and event.subject,
        queue=order.queue,
        job=order.job,
        file=order.file or (event and file_of(event)),
        reason=order.reason,
        by=order.by,
        run=order.run,
        digest=order.digest,
    )


def reason_of(route: EventRoute) -> str:
    """Why an event has no queue, for people."""
    if route.problem is not None:
        named = "" if route.rule is None else f"rule {route.rule}: "
        return f"{named}{route.problem}"[:500]
    if not route.rules:
        return "there are no routing rules"
    nearest = "; ".join(f"{each.queue}/{each.rule}: {each.reason}" for each in route.others[:3])
    return f"none of {route.rules:,} rules matches; {nearest}"[:500]


def _now() -> datetime:
    """The moment of the first attempt: another attempt writes the same row."""
    return activity.info().scheduled_time
