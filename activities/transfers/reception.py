"""Events: received, routed and recorded; what a job will do, and when it may begin."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.shared.dependencies import delay
from activities.shared.failures import translate_failures
from activities.transfers.api import OwnActions
from activities.transfers.cloud_events import NoEvent, read_event
from activities.transfers.endpoints import StepFiles, staged_files
from activities.transfers.operators_files import Queue
from activities.transfers.records import Transfer
from activities.transfers.store import SqlSequenceLocks, SqlTransferStore
from adapters.ports.errors import Unavailable
from adapters.ports.records import RejectionRecord
from adapters.ports.transfers import (
    EventSender,
    PartnerStore,
    RouteStore,
    SettingsFile,
    SettingsSource,
    StartedJobs,
)
from adapters.staging import BlobStaging
from workflows.shared.errors import KEY_REUSED, NOT_YET, RuleViolation
from workflows.transfers.events import WATCH, FileNotice, TransferStatus
from workflows.transfers.fired_events import fired_body
from workflows.transfers.job_settings import (
    Settings,
    corrected,
    job_of,
    partners_of,
    plan_of,
    read_settings,
    refuse_other_past,
    writes_at_end,
)
from workflows.transfers.receipts import ReceiptFile
from workflows.transfers.routes import RouteRemark, RouteRule, RouteTable
from workflows.transfers.runs import (
    ActionInput,
    ActionResult,
    EventRoute,
    FileEventInput,
    PlanInput,
    Reception,
    RouteInput,
    SequenceLockInput,
    SequencePosition,
    StatusInput,
    TransferPlan,
    done_elsewhere,
    file_job_id,
    fired_to,
    in_its_turn,
    status_label,
    transfer_workflow_id,
    unrouted_reason,
)
from workflows.transfers.settings import FireEvent, SettingsJob, fill_name, names_file


class RouteCache:
    """The rules, indexed; whether they have changed is asked at most every few seconds.

    Args:
        store: Where they are kept.
        seconds: For which rules hold without asking. 0: ask every time.
        clock: Seconds.
    """

    def __init__(
        self, store: RouteStore, seconds: float = 5, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._table = RouteTable(())
        self._unusable: Sequence[RouteRemark] = ()
        self._version: str | None = None
        self._asked = -float("inf")
        self._lock = asyncio.Lock()

    async def table(self) -> RouteTable:
        """The rules as they are, or were a few seconds ago.

        Raises:
            Unavailable: They cannot be read; an event is never routed by rules that may be old.
        """
        async with self._lock:
            if self._clock() - self._asked >= self._seconds:
                await self._refresh()
            return self._table

    async def unusable(self) -> Sequence[RouteRemark]:
        """Rows of which no rule can be made, as old as the table."""
        await self.table()
        return self._unusable

    def forget(self) -> None:
        """Ask again at once: a rule was changed here."""
        self._asked = -float("inf")

    async def _refresh(self) -> None:
        # The version is read first: a change in between is then seen once more, never missed.
        version = await self._store.version()
        if version != self._version:
            rules: Sequence[RouteRule] = await self._store.rules()
            self._unusable = await self._store.unusable()
            self._table = await asyncio.to_thread(RouteTable, rules)
            self._version = version
        self._asked = self._clock()


@dataclass(frozen=True)
class ReceivingPorts:
    """What `Receiving` is given."""

    store: SqlTransferStore
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
    async def receive(self, order: FileEventInput) -> Reception:
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
        asked = RouteInput(
            transfer_id=order.transfer_id, event=event, digest=order.digest, at=_now()
        )
        if not await self._routed(asked, route):
            return await self._refuse_late(order)
        return Reception(status=status, event=event, route=route)

    @activity.defn(name="transfers.route")
    @translate_failures
    async def route(self, order: RouteInput) -> EventRoute:
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
    async def compare_job(self, order: FileEventInput) -> Reception:
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
            Transfer.of(
                order.transfer_id,
                None,
                status=TransferStatus.FAILED,
                at=_now(),
                reason=f"refused, by {order.way_in}: {reason}",
            )
        )
        return Reception(status=TransferStatus.FAILED, refused=reason, digest=digest)

    @activity.defn(name="transfers.record")
    @translate_failures
    async def record(self, order: StatusInput) -> None:
        """Write that a transfer enters a state; a line of its trail, where it has another event."""
        row = _row(order)
        if not await self._ports.store.record(row):
            reason = f"of another event with its source and id: {order.reason or order.status}"
            await self._ports.store.note(row.model_copy(update={"reason": reason[:500]}))

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

    async def _routed(self, order: RouteInput, route: EventRoute) -> bool:
        """Write where an event goes; False: the row is that of another event."""
        is_assigned = route.queue is not None
        rule = f"rule {route.rule} of queue {route.queue}" if route.rule else order.reason
        written = StatusInput(
            transfer_id=order.transfer_id,
            status=TransferStatus.ASSIGNED if is_assigned else TransferStatus.NO_ASSIGNED,
            at=order.at,
            run=(file_job_id if is_assigned else transfer_workflow_id)(order.transfer_id),
            digest=order.digest,
            event=order.event,
            queue=route.queue,
            reason=rule if is_assigned else unrouted_reason(route),
            by=order.by,
        )
        return await self._ports.store.record(_row(written))

    async def _reject(self, order: FileEventInput, error: NoEvent) -> Reception:
        reason = str(error)
        written = StatusInput(
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

    async def _refuse_late(self, order: FileEventInput) -> Reception:
        """Refuse an event when another one has come since its row was looked for."""
        known = await self._ports.store.get(order.transfer_id)
        if known is None:
            # Retention has removed it at this moment: the next attempt has the id for itself.
            raise Unavailable("the row of another event was removed meanwhile")
        return await self._refuse_other(order, known)

    async def _refuse_other(self, order: FileEventInput, known: Transfer) -> Reception:
        reason = (
            f"another event came with the source and id of this one, at {known.at:%Y-%m-%d %H:%M} "
            f"UTC, and {status_label(known.status)}: this one was not used; "
            "send it again with another id"
        )
        await self._ports.rejected.record(
            order.way_in, order.transfer_id, KEY_REUSED, reason, order.body.encode()
        )
        return Reception(status=known.status, refused=reason, digest=known.digest)


def _row(order: StatusInput) -> Transfer:
    return Transfer.of(**dict(order))


def _now() -> datetime:
    """The moment of the first attempt: another attempt writes the same row."""
    return activity.info().scheduled_time


@dataclass(frozen=True)
class PlanningPorts:
    """What `Planning` is given."""

    settings: SettingsSource
    partners: PartnerStore
    queues: Collection[str]
    """Queues that there are."""
    turns: SqlSequenceLocks
    store: SqlTransferStore
    keeps_copies: bool = True
    """Whether there is a key to encrypt copies with."""
    own: OwnActions = field(default_factory=lambda: OwnActions({}))
    """Actions of packages."""


class Planning:
    """Loads what jobs do, and keeps those of one sequence key in order.

    Args:
        ports: Where settings, partners and turns are kept.
    """

    def __init__(self, ports: PlanningPorts) -> None:
        self._ports = ports
        self._read: tuple[SettingsFile, Settings] | None = None
        self._reading = asyncio.Lock()

    @activity.defn(name="transfers.load_plan")
    @translate_failures
    async def load_plan(self, order: PlanInput) -> TransferPlan:
        """The job of an event, with every name resolved.

        Raises:
            ApplicationError: `Permanent`: the settings are wrong, or fit no job, queue or partner.
        """
        if order.plan is not None and order.action is not None and not order.settings:
            plan = corrected(order.plan, order.job.event, order.index, order.action)
        else:
            plan = await self._read_plan(order)
        self._ports.own.check(plan.job.actions.list)
        for name in partners_of(plan.job.actions.list):
            if await self._ports.partners.get(name) is None:
                raise RuleViolation(
                    f"job {plan.job.job} names the partner {name}, and there is no such partner: "
                    f"`docflow partner add {name}`"
                )
        if order.plan is None:
            await self._begun(order, plan)
            if plan.sequence is None and order.job.way_in == WATCH:
                await self._ports.turns.unreserve(file_job_id(order.job.transfer_id))
        return plan

    async def _read_plan(self, order: PlanInput) -> TransferPlan:
        job = order.job
        if job.queue not in self._ports.queues:
            raise RuleViolation(
                f"there is no queue {job.queue}; there are {', '.join(sorted(self._ports.queues))}"
            )
        file = await self._ports.settings.read()
        settings = await self._settings(file)
        found = job_of(settings, job.queue, job.event.key)
        unused = settings.unused_by(found)
        if found.keep_copy_days and not self._ports.keeps_copies:
            raise RuleViolation(
                f"job {found.job} has KeepCopyDays, and copies are kept encrypted only: set "
                "DOCFLOW_TRANSFERS_STAGING_KEY"
            )
        is_resend = job.resent_from is not None
        remarks = done_elsewhere(job, found.actions.list)
        if is_resend:
            found, remarks = _writing_again(found, job.resend_to)
        plan = plan_of(found, job.event, file.ref, unused, has_files=is_resend, remarks=remarks)
        if order.plan is not None:
            refuse_other_past(plan, order.plan, order.index)
            plan = in_its_turn(plan, order.plan)
            if order.action is not None:
                plan = corrected(plan, job.event, order.index, order.action)
        return plan

    async def _begun(self, order: PlanInput, plan: TransferPlan) -> None:
        job = order.job
        await self._ports.store.record(
            Transfer.of(
                job.transfer_id,
                job.event,
                status=TransferStatus.READ_MESSAGE,
                at=order.at,
                queue=job.queue,
                job=plan.job.job,
                run=file_job_id(job.transfer_id),
                digest=job.digest,
            )
        )

    async def _settings(self, file: SettingsFile) -> Settings:
        """The settings of a file, read once for as long as it is the same."""
        async with self._reading:
            if self._read is None or self._read[0].ref.sha256 != file.ref.sha256:
                # A file of thousands of jobs takes a while: other runs are served meanwhile.
                self._read = file, await asyncio.to_thread(read_settings, file.text)
            return self._read[1]

    @activity.defn(name="transfers.take_turn")
    @translate_failures
    async def take_turn(self, order: SequenceLockInput) -> SequencePosition:
        """Stand in line for a sequence key; ends when the position is another than is known.

        Raises:
            ApplicationError: `NotYet`, with the delay until the server asks again.
        """
        before = await self._ports.turns.take(order.key, order.run, order.arrived)
        if before and order.known in (len(before), -1):
            raise ApplicationError(
                f"position {len(before)} of {order.key!r}, behind {before[0]}"[:500],
                type=NOT_YET,
                next_retry_delay=delay(activity.info().attempt) / 5,
            )
        return SequencePosition(position=len(before), behind=before[0] if before else None)


def _writing_again(job: SettingsJob, partner: str | None) -> tuple[SettingsJob, Sequence[str]]:
    """What is done with a kept copy: it is written, as it was, to the same partners or another.

    Returns:
        The job with the actions that write the files as they were kept, and remarks.

    Raises:
        RuleViolation: None of its actions does.
    """
    writes, others = writes_at_end(job.actions.list)
    if not writes:
        raise RuleViolation(
            "no WriteFile of the job writes the files as they are at its end, which are what was "
            "kept: there is nothing to send again"
        )
    remarks = [f"not sent to {each.partner}, which was sent other files" for each in others]
    if partner is not None:
        writes = [each.model_copy(update={"partner": partner}) for each in writes]
    actions = job.actions.model_copy(update={"list": tuple(writes)})
    return job.model_copy(update={"actions": actions}), remarks


class Firing:
    """Sends events.

    Args:
        sender: Has them carried out.
        staging: Where the files of the run are listed.
    """

    def __init__(self, sender: EventSender, staging: BlobStaging) -> None:
        self._sender, self._staging = sender, staging

    @activity.defn(name="transfers.fire_event")
    @translate_failures
    async def fire_event(self, order: ActionInput) -> ActionResult:
        """Send one event; one for each file where its templates name the file.

        An action that is done again sends the same events, which are carried out once.

        Raises:
            RuleViolation: It would go round in a circle, is too long, or names a file that no
                action has read.
            Unavailable: It was not accepted.
        """
        action = order.action
        assert isinstance(action, FireEvent), "the activity is that of the action"
        async with StepFiles(self._staging, order) as step:
            files = await staged_files(self._staging, order.files)
            names = [file.name for file in files] or _without_files(order)
            bodies = dict.fromkeys(fired_body(order, _filled(order.names, name)) for name in names)
            sent = [await self._sender.send(body, action.queue) for body in bodies]
            where = fired_to(action.queue)
            lines = [
                ReceiptFile(name=f"event {transfer}", size=len(body.encode()), place=where)
                for transfer, body in zip(sent, bodies, strict=True)
            ]
            remarks = [] if sent else ["no event was sent: it names the file, and there was none"]
            return await step.result(order.files, lines, fired=sent, remarks=remarks)


def _without_files(order: ActionInput) -> Sequence[str]:
    """One event where no template names a file; none where one does and a ReadFile found none.

    Raises:
        RuleViolation: A template names a file, and no action has read any.
    """
    if not any(map(names_file, order.names.values())):
        return [""]
    if order.files.blob is None:
        raise RuleViolation("FireEvent names a file: a ReadFile has to stand before it")
    return []


def _filled(templates: Mapping[str, str], name: str) -> Mapping[str, str]:
    return {field: fill_name(text, name) for field, text in templates.items()}
