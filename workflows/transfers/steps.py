"""Steps of transfers as workflows call them; `activities.transfers` carries them out."""

from temporalio import activity

from workflows.transfers.runs import (
    CopyRetentionInput,
    CopyRetentionResult,
    EventRoute,
    FileEventInput,
    KeepCopyInput,
    KeptCopy,
    KeyWarnings,
    KeyWarningsInput,
    PlanInput,
    ReceiptInput,
    Reception,
    RouteInput,
    SequenceLockInput,
    SequencePosition,
    StatusInput,
    StoredReceipt,
    TransferClosing,
    TransferPlan,
)
from workflows.transfers.watches import (
    ExpectationCheckInput,
    ExpectedDays,
    ExpectedResult,
    PollFailure,
    PollWatchInput,
    PollWatchResult,
)


class JobClosing:
    """Ends jobs."""

    @activity.defn(name="transfers.close")
    async def close(self, closing: TransferClosing) -> None: ...


class CopyRemoval:
    """Removes copies."""

    @activity.defn(name="transfers.remove_copies")
    async def remove_copies(self, order: CopyRetentionInput) -> CopyRetentionResult: ...


class Receipts:
    """Puts receipts together, and keeps copies of what was written."""

    @activity.defn(name="transfers.receipt")
    async def receipt(self, order: ReceiptInput) -> StoredReceipt: ...

    @activity.defn(name="transfers.keep")
    async def keep(self, order: KeepCopyInput) -> KeptCopy: ...


class Receiving:
    """Checks events, finds their routes, and writes the states of transfers."""

    @activity.defn(name="transfers.receive")
    async def receive(self, order: FileEventInput) -> Reception: ...

    @activity.defn(name="transfers.route")
    async def route(self, order: RouteInput) -> EventRoute: ...

    @activity.defn(name="transfers.compare_job")
    async def compare_job(self, order: FileEventInput) -> Reception: ...

    @activity.defn(name="transfers.record")
    async def record(self, order: StatusInput) -> None: ...


class Planning:
    """Loads what jobs do, and keeps those of one sequence key in order."""

    @activity.defn(name="transfers.load_plan")
    async def load_plan(self, order: PlanInput) -> TransferPlan: ...

    @activity.defn(name="transfers.take_turn")
    async def take_turn(self, order: SequenceLockInput) -> SequencePosition: ...


class Watching:
    """Looks at endpoints."""

    @activity.defn(name="transfers.look")
    async def look(self, order: PollWatchInput) -> PollWatchResult: ...

    @activity.defn(name="transfers.note_look")
    async def note_look(self, failure: PollFailure) -> None: ...


class Expecting:
    """Judges days of expectations."""

    @activity.defn(name="transfers.check_expected")
    async def check_expected(self, order: ExpectationCheckInput) -> ExpectedResult: ...

    @activity.defn(name="transfers.record_expected")
    async def record_expected(self, order: ExpectedDays) -> None: ...


class KeyExpiry:
    """Looks at the keys of all partners."""

    @activity.defn(name="transfers.expiring_keys")
    async def expiring_keys(self, order: KeyWarningsInput) -> KeyWarnings: ...
