"""`transfers.load_plan` and `transfers.take_turn`: what a job will do, and when it may begin."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.dependencies import delay
from activities.failures import translate_failures
from adapters.ports.transfers import (
    PartnerStore,
    SettingsFile,
    SettingsSource,
    StatusRow,
    TransferStore,
    Turns,
)
from contracts.errors import NOT_YET
from contracts.transfers import (
    WATCH,
    LoadOrder,
    SettingsJob,
    TransferPlan,
    TransferStatus,
    Turn,
    TurnOrder,
    file_job_id,
)
from domain.errors import RuleViolation
from domain.transfers.action_order import writes_at_end
from domain.transfers.continued import done_elsewhere, in_its_turn
from domain.transfers.event_facts import file_of
from domain.transfers.job_settings import (
    Settings,
    corrected,
    job_of,
    partners_of,
    plan_of,
    read_settings,
    refuse_other_past,
)


@dataclass(frozen=True)
class PlanningPorts:
    """What `Planning` is given."""

    settings: SettingsSource
    partners: PartnerStore
    queues: Collection[str]
    """Queues that there are."""
    turns: Turns
    store: TransferStore
    keeps_copies: bool = True
    """Whether there is a key to encrypt copies with."""


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
    async def load_plan(self, order: LoadOrder) -> TransferPlan:
        """The job of an event, with every name resolved.

        Raises:
            ApplicationError: `Permanent`: the settings are wrong, or fit no job, queue or partner.
        """
        if order.plan is not None and order.action is not None and not order.settings:
            plan = corrected(order.plan, order.job.event, order.index, order.action)
        else:
            plan = await self._read_plan(order)
        for name in partners_of(plan.job.actions.list):
            if await self._ports.partners.get(name) is None:
                raise RuleViolation(
                    f"job {plan.job.job} names the partner {name}, and there is no such partner: "
                    f"`docflow partners add {name}`"
                )
        if order.plan is None:
            await self._begun(order, plan)
            if plan.sequence is None and order.job.way_in == WATCH:
                await self._ports.turns.unreserve(file_job_id(order.job.transfer_id))
        return plan

    async def _read_plan(self, order: LoadOrder) -> TransferPlan:
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

    async def _begun(self, order: LoadOrder, plan: TransferPlan) -> None:
        job = order.job
        await self._ports.store.record(
            StatusRow(
                transfer_id=job.transfer_id,
                status=TransferStatus.READ_MESSAGE,
                at=order.at,
                source=job.event.source,
                event_id=job.event.id,
                account_id=job.event.account_id,
                type=job.event.type,
                subject=job.event.subject,
                queue=job.queue,
                job=plan.job.job,
                file=file_of(job.event),
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
    async def take_turn(self, order: TurnOrder) -> Turn:
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
        return Turn(position=len(before), behind=before[0] if before else None)


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
