"""Steps of batches as workflows call them; `activities.batches` carries them out."""

from temporalio import activity

from workflows.batches.loads import (
    DocumentGroupInput,
    GivenUp,
    GiveUp,
    GroupOutcomes,
    LoadStepInput,
    StepOutcome,
)
from workflows.batches.names import BatchKey, BatchPlan
from workflows.batches.runs import (
    Announce,
    BatchAttention,
    CanaryCheckInput,
    Closing,
    DeliverySeen,
    DocumentCounts,
    NoteEvents,
    Orphans,
    PolledDepth,
    RedriveInput,
    Redriven,
    SkipBatch,
    StepDone,
    StepInput,
    SweepInfo,
    SweepInput,
    Validate,
    Validation,
    WaitingBatches,
)


class DocumentGroups:
    """Loads groups of messages."""

    @activity.defn(name="batches.load_group")
    async def load_group(self, order: DocumentGroupInput) -> GroupOutcomes: ...


class DocumentLoads:
    """Loads documents of batches."""

    @activity.defn(name="batches.dedupe")
    async def dedupe(self, order: LoadStepInput) -> StepOutcome: ...

    @activity.defn(name="batches.extract")
    async def extract(self, order: LoadStepInput) -> StepOutcome: ...

    @activity.defn(name="batches.tags")
    async def tags(self, order: LoadStepInput) -> StepOutcome: ...

    @activity.defn(name="batches.relations")
    async def relations(self, order: LoadStepInput) -> StepOutcome: ...

    @activity.defn(name="batches.attachments")
    async def attachments(self, order: LoadStepInput) -> StepOutcome: ...

    @activity.defn(name="batches.give_up")
    async def give_up(self, lost: GiveUp) -> GivenUp: ...


class BatchDrain:
    """Looks at queues and loads."""

    @activity.defn(name="batches.look")
    async def look(self, work: StepInput) -> PolledDepth: ...

    @activity.defn(name="batches.redrive")
    async def redrive(self, order: RedriveInput) -> Redriven: ...

    @activity.defn(name="batches.cancel_loads")
    async def cancel_loads(self, key: BatchKey) -> DocumentCounts | None: ...


class BatchCompletion:
    """Announces, records and cleans up."""

    @activity.defn(name="batches.announce")
    async def announce(self, order: Announce) -> None: ...

    @activity.defn(name="batches.close")
    async def close(self, closing: Closing) -> DocumentCounts: ...

    @activity.defn(name="batches.call")
    async def call(self, attention: BatchAttention) -> None: ...

    @activity.defn(name="batches.sweep_facts")
    async def sweep_facts(self, key: BatchKey) -> SweepInfo: ...

    @activity.defn(name="batches.count")
    async def count(self, key: BatchKey) -> DocumentCounts: ...

    @activity.defn(name="batches.truncate")
    async def truncate(self, key: BatchKey) -> None: ...


class BatchProvisioning:
    """Makes the resources of batches."""

    @activity.defn(name="batches.create_queue")
    async def create_queue(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.create_dead_letters")
    async def create_dead_letters(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.set_redrive_policy")
    async def set_redrive_policy(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.set_queue_policy")
    async def set_queue_policy(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.subscribe")
    async def subscribe(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.grant_permissions")
    async def grant_permissions(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.create_function")
    async def create_function(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.attach_mapping")
    async def attach_mapping(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.reserve_concurrency")
    async def reserve_concurrency(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.look_for_delivery")
    async def look_for_delivery(self, order: CanaryCheckInput) -> DeliverySeen: ...

    @activity.defn(name="batches.prove_delivery")
    async def prove_delivery(self, work: StepInput) -> StepDone: ...


class BatchTeardown:
    """Removes the resources of batches."""

    @activity.defn(name="batches.unsubscribe")
    async def unsubscribe(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.detach_mapping")
    async def detach_mapping(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.delete_function")
    async def delete_function(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.revoke_permissions")
    async def revoke_permissions(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.delete_queue")
    async def delete_queue(self, work: StepInput) -> StepDone: ...

    @activity.defn(name="batches.delete_dead_letters")
    async def delete_dead_letters(self, work: StepInput) -> StepDone: ...


class BatchOrphans:
    """Finds orphans."""

    @activity.defn(name="batches.orphans")
    async def orphans(self, order: SweepInput) -> Orphans: ...


class BatchPlans:
    """Makes plans."""

    @activity.defn(name="batches.plan")
    async def plan(self, key: BatchKey) -> BatchPlan: ...


class CaseBacklog:
    """Keeps the batches of a case in order."""

    @activity.defn(name="batches.note")
    async def record_events(self, notes: NoteEvents) -> WaitingBatches: ...

    @activity.defn(name="batches.skip")
    async def skip(self, skipped: SkipBatch) -> None: ...


class BatchLeases:
    """Takes leases for batches; they are released in the transaction that ends a batch."""

    @activity.defn(name="batches.take_leases")
    async def take_leases(self, work: StepInput) -> StepDone: ...


class BatchValidation:
    """Answers whether a batch may be built."""

    @activity.defn(name="batches.validate")
    async def validate(self, asked: Validate) -> Validation: ...
