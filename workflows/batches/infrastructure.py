"""Resources of a batch: made as soon as those they need exist, proven, and removed one by one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError

from workflows.batches.names import BatchKey, BatchPlan, Resource, ResourceState, Timings
from workflows.batches.runs import CanaryCheckInput, PolledDepth, ResourceRow, StepDone, StepInput
from workflows.batches.steps import BatchProvisioning, BatchTeardown
from workflows.batches.validation import delivery_failure
from workflows.shared import policies
from workflows.shared.errors import PERMANENT
from workflows.shared.failures import awaited_by, explain, reraise_cancellation
from workflows.shared.waiting import StepOutages, Waiting

FIRST_PAUSE: Final = timedelta(seconds=1)
"""Between two looks; it doubles from look to look."""
LONGEST_PAUSE: Final = timedelta(seconds=15)
FIRST_CANARY_PAUSE: Final = timedelta(seconds=2)
"""Until another canary is published, as the one before was lost or its filter policy did not work
yet; it doubles up to the longest pause. Leases of the account are held meanwhile."""


async def prove(work: StepInput) -> StepDone:
    """Publish canaries until enough of them arrive; timers of the run pass between two looks.

    A filter policy may take a quarter of an hour to work, and what is published before is lost:
    publishers are notified only after this is done. Of the time that is given only these pauses
    count: a look that waits for a free worker takes nothing of it.

    Raises:
        ActivityError: A canary cannot be published, or not be looked for.
        ApplicationError: `Permanent` when none has arrived in time.
    """
    pause, left = FIRST_PAUSE, timedelta(seconds=work.delivery)
    number, missing = 0, work.plan.canaries
    until_canary, canary_pause = timedelta(0), FIRST_CANARY_PAUSE
    while True:
        is_due = until_canary <= timedelta(0)
        if is_due:
            number, until_canary = number + 1, canary_pause
            canary_pause = min(2 * canary_pause, LONGEST_PAUSE)
        seen = await workflow.execute_activity_method(
            BatchProvisioning.look_for_delivery,
            CanaryCheckInput(
                key=work.key,
                plan=work.plan,
                canary=f"{workflow.info().workflow_id}/{number}",
                send=is_due,
            ),
            summary=f"look for canary {number} of {work.key}",
            **policies.LONG,
        )
        if seen.arrived:
            missing -= 1
            if missing == 0:
                return StepDone(state=ResourceState.READY)
            # The next one at once.
            until_canary = timedelta(0)
            continue
        if not left:
            raise ApplicationError(delivery_failure(work), type=PERMANENT, non_retryable=True)
        pause = min(pause, left)
        await workflow.sleep(pause)
        until_canary -= pause
        pause, left = min(2 * pause, LONGEST_PAUSE), left - pause


Step = Callable[[Any, StepInput], Awaitable[StepDone]]
OnFailure = Callable[[str], Awaitable[None]]
"""Given what failed permanently; returns when it is to be tried again."""


class Making(NamedTuple):
    """How a resource is made, and what has to be there before."""

    step: Step
    needs: Sequence[Resource] = ()


PROVISIONING: Final[Mapping[Resource, Making]] = MappingProxyType(
    {
        Resource.QUEUE: Making(BatchProvisioning.create_queue),
        Resource.DEAD_LETTERS: Making(BatchProvisioning.create_dead_letters),
        Resource.REDRIVE_POLICY: Making(
            BatchProvisioning.set_redrive_policy, (Resource.QUEUE, Resource.DEAD_LETTERS)
        ),
        Resource.QUEUE_POLICY: Making(BatchProvisioning.set_queue_policy, (Resource.QUEUE,)),
        Resource.SUBSCRIPTION: Making(BatchProvisioning.subscribe, (Resource.QUEUE_POLICY,)),
        Resource.PERMISSIONS: Making(BatchProvisioning.grant_permissions),
        Resource.FUNCTION: Making(BatchProvisioning.create_function),
        Resource.CONCURRENCY: Making(BatchProvisioning.reserve_concurrency, (Resource.FUNCTION,)),
        Resource.DELIVERY: Making(BatchProvisioning.prove_delivery, (Resource.SUBSCRIPTION,)),
        Resource.MAPPING: Making(
            BatchProvisioning.attach_mapping,
            (
                Resource.REDRIVE_POLICY,
                Resource.PERMISSIONS,
                Resource.FUNCTION,
                # Nothing may take the canary out of the queue before it is seen.
                Resource.DELIVERY,
            ),
        ),
    }
)

TEARDOWN: Final[Mapping[Resource, Step]] = MappingProxyType(
    {
        Resource.SUBSCRIPTION: BatchTeardown.unsubscribe,
        Resource.MAPPING: BatchTeardown.detach_mapping,
        Resource.FUNCTION: BatchTeardown.delete_function,
        Resource.PERMISSIONS: BatchTeardown.revoke_permissions,
        Resource.QUEUE: BatchTeardown.delete_queue,
        Resource.DEAD_LETTERS: BatchTeardown.delete_dead_letters,
    }
)
"""In this order: nothing new comes in, nothing more is worked on, then the queues go."""

OF_FUNCTION: Final = frozenset(
    {
        Resource.PERMISSIONS,
        Resource.FUNCTION,
        Resource.MAPPING,
        Resource.CONCURRENCY,
    }
)
GOES_WITH: Final = MappingProxyType(
    {
        Resource.FUNCTION: (Resource.CONCURRENCY,),
        Resource.QUEUE: (Resource.REDRIVE_POLICY, Resource.QUEUE_POLICY, Resource.DELIVERY),
    }
)
"""Resources that are removed together with another one."""


class Building:
    """The resources of one batch, and the state of each."""

    def __init__(
        self,
        key: BatchKey,
        timings: Timings,
        waiting: Waiting,
        rows: Sequence[ResourceRow] = (),
        show: Callable[[], None] = lambda: None,
    ) -> None:
        self._key = key
        self._timings = timings
        self._waiting = waiting
        self._show = show
        self._states = {row.resource: row.state for row in rows}
        self._since = {row.resource: row.since for row in rows}
        self._names = {row.resource: row.name for row in rows}

    @property
    def rows(self) -> tuple[ResourceRow, ...]:
        """In the order of their making."""
        return tuple(
            ResourceRow(
                resource=resource,
                state=self._states[resource],
                since=self._since.get(resource),
                name=self._names.get(resource),
            )
            for resource in Resource
            if resource in self._states
        )

    @property
    def left(self) -> tuple[Resource, ...]:
        """What could not be removed."""
        return tuple(row.resource for row in self.rows if row.state is ResourceState.LEFT)

    @property
    def is_closed(self) -> bool:
        """Nothing more comes in."""
        return self._states.get(Resource.SUBSCRIPTION) is ResourceState.GONE

    @property
    def subscription(self) -> str | None:
        """What the cloud calls the subscription, while it has to be there."""
        is_ready = self._states.get(Resource.SUBSCRIPTION) is ResourceState.READY
        return self._names.get(Resource.SUBSCRIPTION) if is_ready else None

    @property
    def keeps_dead_letters(self) -> bool:
        """The dead-letter queue was not empty, and stays."""
        return self._states.get(Resource.DEAD_LETTERS) in (ResourceState.KEPT, ResourceState.LEFT)

    async def make(self, plan: BatchPlan, on_failure: OnFailure) -> None:
        """Make everything; a step that fails permanently is retried after `on_failure` returns."""
        missing = [resource for resource in PROVISIONING if _is_made(resource, plan)]
        outages = StepOutages(self._waiting)
        while missing:
            failed = await self._make(plan, missing)
            away = next(filter(awaited_by, failed.values()), None)
            if away is not None and await outages.waited_for(away):
                continue
            if failed:
                reasons = (f"{name}: {explain(error)}" for name, error in failed.items())
                await on_failure("; ".join(reasons))

    async def _make(self, plan: BatchPlan, missing: list[Resource]) -> dict[Resource, FailureError]:
        """Make what can be made, and take it off the list; what failed permanently, and why."""
        work, failed = self._input(plan), dict[Resource, FailureError]()
        tried = set[Resource]()

        async def make(resource: Resource) -> None:
            making = PROVISIONING[resource]

            def has_all() -> bool:
                return not set(making.needs).intersection(missing)

            # However a step ends without its resource, no other one may wait for that.
            await workflow.wait_condition(lambda: has_all() or bool(tried.intersection(missing)))
            if not has_all():
                return
            self._note(resource, ResourceState.CREATING)
            try:
                if resource is Resource.DELIVERY and plan.proof_by_timer:
                    done = await prove(work)
                else:
                    done = await self._run(making.step, work, f"make {resource}")
                missing.remove(resource)
                self._note(resource, done.state, done.name)
            except FailureError as error:
                reraise_cancellation(error)
                failed[resource] = error
            finally:
                tried.add(resource)

        for outcome in await asyncio.gather(*map(make, missing), return_exceptions=True):
            if outcome is not None:
                raise outcome
        return failed

    async def restore(self, plan: BatchPlan) -> None:
        """Make again what was deleted by someone else; the rest is found as it is.

        Delivery is not proven again: the function would take the canary out of the queue.
        """
        for resource, making in PROVISIONING.items():
            if resource is Resource.DELIVERY or not _is_made(resource, plan):
                continue
            if resource is Resource.SUBSCRIPTION and self.is_closed:
                continue
            done = await self._run(making.step, self._input(plan), f"restore {resource}")
            self._note(resource, done.state, done.name)

    async def close_intake(self, plan: BatchPlan) -> None:
        """Take the subscription away: nothing more comes in."""
        await self._remove(
            Resource.SUBSCRIPTION, TEARDOWN[Resource.SUBSCRIPTION], self._input(plan)
        )

    async def remove(
        self, plan: BatchPlan, *, keep_dead_letters: bool, on_failure: OnFailure | None
    ) -> None:
        """Remove everything, whatever there is of it.

        Args:
            plan: Of the batch.
            keep_dead_letters: A dead-letter queue that holds something stays.
            on_failure: Given what cannot be removed; returns to try again, or raises
                `LeftToSweeper`. None: it is left without asking.
        """
        work = self._input(plan, keep_dead_letters=keep_dead_letters)
        for resource, step in TEARDOWN.items():
            if not plan.with_function and resource in OF_FUNCTION:
                continue
            if resource is Resource.PERMISSIONS and plan.static_permissions and on_failure:
                # A sweep takes back what a release before has granted to the batch.
                continue
            try:
                await self._remove_or_ask(resource, step, work, on_failure)
            except LeftToSweeper:
                self._note(resource, ResourceState.LEFT)

    async def _remove_or_ask(
        self, resource: Resource, step: Step, work: StepInput, on_failure: OnFailure | None
    ) -> None:
        async def ask(failure: FailureError) -> None:
            if on_failure is None:
                raise LeftToSweeper
            await on_failure(f"{resource}: {explain(failure)}")

        await self._waiting.retried(lambda: self._remove(resource, step, work), ask)

    async def _remove(self, resource: Resource, step: Step, work: StepInput) -> None:
        self._note(resource, ResourceState.DELETING)
        done = await self._run(step, work, f"remove {resource}")
        for name in (resource, *GOES_WITH.get(resource, ())):
            if name in self._states:
                self._note(name, done.state)

    def _note(self, resource: Resource, state: ResourceState, name: str | None = None) -> None:
        if self._states.get(resource) is not state:
            self._since[resource] = workflow.now()
        self._states[resource], self._names[resource] = state, name
        self._show()

    async def _run(self, step: Step, work: StepInput, summary: str) -> StepDone:
        return await workflow.execute_activity_method(
            step, work, summary=f"{summary} of {self._key}", **policies.LONG
        )

    def _input(self, plan: BatchPlan, *, keep_dead_letters: bool = True) -> StepInput:
        return StepInput(
            key=self._key,
            plan=plan,
            keep_dead_letters=keep_dead_letters,
            delivery=self._timings.delivery,
        )


def _is_made(resource: Resource, plan: BatchPlan) -> bool:
    if resource is Resource.PERMISSIONS:
        return plan.needs_grants
    return plan.with_function or resource not in OF_FUNCTION


class LeftToSweeper(Exception):
    """A resource that cannot be removed is left to the sweeper."""


def table_of(rows: Sequence[ResourceRow], depths: Sequence[PolledDepth]) -> str:
    """What a person sees of a batch's resources and queues, in Markdown."""
    lines = ["| resource | state |", "|---|---|"]
    lines += [f"| {row.resource} | {row.state} |" for row in rows]
    if depths:
        lines += ["", "| polled (UTC) | visible | delayed | in flight | dead letters | loads |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [
            f"| {depth.at:%m-%d %H:%M:%S} | {depth.queue.visible} | {depth.queue.delayed} "
            f"| {depth.queue.in_flight} | {depth.dead_letters.total} | {depth.loads} |"
            for depth in reversed(depths)
        ]
    return "\n".join(lines)
