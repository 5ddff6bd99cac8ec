"""Runs of transfers: orders, results, and how a job ends."""

from collections.abc import Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field

from workflows.shared.contracts import BlobRef, Contract, Person, Retry
from workflows.transfers.events import (
    FileNotice,
    PartnerName,
    QueueName,
    RuleName,
    Sentence,
    SettingsJobName,
    TransferId,
    TransferStatus,
    transfer_id_of,
)
from workflows.transfers.receipts import ReceiptStep
from workflows.transfers.routes import RouteRemark
from workflows.transfers.settings import (
    ACTIONS,
    Action,
    CallHttp,
    FireEvent,
    ReadFile,
    SettingsJob,
    WriteFile,
)

REMARKS: Final = 10
INLINE_STEP: Final = 2_048
"""Characters of a receipt's step that stands in history: one file, named and hashed."""
PARK_SECONDS: Final = 14 * 24 * 3600


class FileEventInput(Contract):
    """Input of `FileEvent`: the event as it arrived; its body is checked within the run."""

    transfer_id: TransferId
    body: str = Field(max_length=64 * 1024, repr=False)
    """JSON in structured mode; of an event in binary mode, what that would be."""
    digest: str = Field(max_length=64)
    """SHA-256 of the canonical event."""
    arrived: datetime
    way_in: str = Field(max_length=100)
    """`event-hub`, `api`, `submit`, `watch`, `fire-event` or the name of a queue."""
    park_for_seconds: int = PARK_SECONDS
    notices: bool = False


class Manifest(Contract):
    """The files of a run between two actions; they are listed in a blob, one JSON line each."""

    files: int = 0
    bytes: int = 0
    blob: BlobRef | None = None
    """Lines of `StagedFile`; None: there are no files yet."""


class FileJobInput(Contract):
    """Input of `FileJob`: a routed event."""

    transfer_id: TransferId
    queue: QueueName
    event: FileNotice
    digest: str = Field(max_length=64)
    arrived: datetime
    way_in: str = Field(max_length=100)
    resent_from: TransferId | None = None
    """The transfer whose kept copy is sent again; `transfer_id` is that of `resend_id` then."""
    resend_to: PartnerName | None = None
    """A partner instead of the one that the settings name."""
    resend: int = 0
    """How often it was sent again; 0: it is the event's own run."""
    redriven_from: TransferId | None = None
    """The failed transfer that it carries out anew; `transfer_id` is that of `redrive_id` then."""
    done_before: tuple[tuple[int, str], ...] = Field(default=(), max_length=ACTIONS)
    """Place and name of actions with effects that the failed one has done: none is repeated."""
    done_where: tuple[tuple[int, str], ...] = Field(default=(), max_length=ACTIONS)
    """Place of those actions, and the partner or queue that they sent to: one that sends elsewhere
    by now is carried out."""
    read_before: tuple[tuple[int, str], ...] = Field(default=(), max_length=ACTIONS)
    """Place of actions that read what was written then, and the digest of what they have read."""
    files: Manifest = Manifest()
    """What it begins with: the kept copy."""
    park_for_seconds: int = PARK_SECONDS
    notices: bool = False


class TransferPlan(Contract):
    """What a run will do: read once, kept in the run."""

    job: SettingsJob
    settings: BlobRef | None = None
    """The version of `jobsettings.json` that it is from."""
    names: tuple[dict[str, str], ...] = Field(default=(), max_length=ACTIONS)
    """Of each action, its templates with everything but the file's own name resolved: by the name
    of the field (`path`), and of the entry where the field has several (`data.orderId`)."""
    sequence: str | None = Field(default=None, max_length=1_024)
    remarks: tuple[Sentence, ...] = Field(default=(), max_length=REMARKS)
    """Keys of the settings that nothing reads, and what else a person should know."""
    inline_receipt: bool = False
    """Short steps of its receipt come with the results of actions, and where there are few files
    the worker of the run puts it together. False: a plan of an earlier release."""


class StagedFile(Contract):
    """One file of a run in the staging area."""

    name: str = Field(max_length=1_024)
    """As it will be written: its folders within an archive included."""
    blob: BlobRef
    """Its sha256 and size are of the plain bytes, whether or not they are encrypted at rest."""
    source: str | None = Field(default=None, max_length=1_024)
    """Path at the partner that it was read from."""
    source_size: int | None = None
    source_changed: datetime | None = None
    source_tag: str | None = Field(default=None, max_length=256)
    """Etag, where the protocol has one."""
    scanned: Sentence | None = None
    signed_by: str | None = Field(default=None, max_length=64)


class ActionInput(Contract):
    """Input of the activity of one action."""

    job: FileJobInput
    plan_zone: str = Field(default="UTC", max_length=64)
    index: int = Field(ge=0, lt=ACTIONS)
    round: int = 0
    """How often a person has had it tried again."""
    action: Action
    settings_job: SettingsJobName | None = None
    configured_by: Person | None = None
    names: dict[str, str] = Field(default_factory=dict[str, str])
    """Of its templates, resolved; as in the plan."""
    files: Manifest = Manifest()
    previous: str = Field(default="", max_length=64)
    """SHA-256 of the receipt's step before it; of the event where it is the first."""
    inline_step: bool = False
    """A short step of the receipt may come with the result."""


class ActionResult(Contract):
    """Result of the activity of one action."""

    files: Manifest
    """For the next action."""
    step: BlobRef | None = None
    """Its `ReceiptStep`."""
    inline_step: str = Field(default="", max_length=INLINE_STEP)
    """The same as JSON, where it is short: no blob is written then."""
    step_sha256: str = Field(default="", max_length=64)
    remarks: tuple[Sentence, ...] = Field(default=(), max_length=REMARKS)
    guarantee: str | None = Field(default=None, max_length=100)
    """Of what was written."""
    infected: Sentence | None = None
    """Signature and file: the run ends as failed, nothing is written on."""
    fired: tuple[TransferId, ...] = Field(default=(), max_length=REMARKS)


class EventRoute(Contract):
    """Which queue an event goes to."""

    queue: QueueName | None = None
    """None: no rule matches, or see `problem`."""
    rule: RuleName | None = None
    """None: a person named the queue."""
    priority: int | None = None
    """Of the queue, for Temporal: 1 to 5, the lowest first; None: its default."""
    problem: Sentence | None = None
    """Why the queue of the rule cannot be used."""
    others: tuple[RouteRemark, ...] = Field(default=(), max_length=10)
    """The nearest rules, where none matches."""
    rules: int = 0
    """How many there were."""


class Reception(Contract):
    """Result of `transfers.receive`: an event that was checked, and where it goes."""

    status: TransferStatus
    reason: Sentence | None = None
    """What is wrong with it; of one that has succeeded, when it was carried out before."""
    event: FileNotice | None = None
    """None: it is invalid, or garbage, or was carried out before."""
    route: EventRoute | None = None
    refused: Sentence | None = None
    """Another event came with its source and id: this one is recorded as rejected."""
    digest: str | None = Field(default=None, max_length=64)
    """Of that other event."""


class RouteInput(Contract):
    """Input of `transfers.route`: look again where an event goes."""

    transfer_id: TransferId
    event: FileNotice
    digest: str = Field(max_length=64)
    at: datetime
    queue: QueueName | None = None
    """Named by a person; None: by the rules."""
    by: Person | None = None
    reason: Sentence | None = None


class StatusInput(Contract):
    """Input of `transfers.record`: a transfer enters a state."""

    transfer_id: TransferId
    status: TransferStatus
    at: datetime
    run: str = Field(max_length=200)
    """Workflow id of the run that closes it."""
    digest: str = Field(max_length=64)
    event: FileNotice | None = None
    queue: QueueName | None = None
    job: SettingsJobName | None = None
    file: str | None = Field(default=None, max_length=1_024)
    reason: Sentence | None = None
    by: Person | None = None


class PlanInput(Contract):
    """Input of `transfers.load_plan`; the job has begun then."""

    job: FileJobInput
    at: datetime
    plan: TransferPlan | None = None
    """What it has done so far was done by this plan; None: it begins."""
    index: int = Field(default=0, ge=0, lt=ACTIONS)
    """Of the action that failed."""
    settings: bool = False
    """Read `jobsettings.json` again: actions before that one have to be the same still."""
    action: dict[str, Any] | None = None
    """The action that failed, with corrected settings."""


class SequenceLockInput(Contract):
    """Input of `transfers.take_turn`: runs of one key write one after the other."""

    transfer_id: TransferId
    key: str = Field(max_length=1_024)
    run: str = Field(max_length=200)
    """Workflow id of the run that waits."""
    arrived: datetime
    known: int | None = None
    """The position that is shown already; None: none is; -1: it ends at its turn only."""


class SequencePosition(Contract):
    """Result of `transfers.take_turn`."""

    position: int
    """0: it is this run's turn; else how many are before it."""
    behind: str | None = Field(default=None, max_length=200)
    """Workflow id of the run whose turn it is."""


class SettleInput(Contract):
    """Input of `transfers.settle_source`: what becomes of what one `ReadFile` has read."""

    job: FileJobInput
    index: int = Field(ge=0, lt=ACTIONS)
    action: ReadFile
    names: dict[str, str] = Field(default_factory=dict[str, str])
    files: Manifest
    """As that action has read them."""
    succeeded: bool
    """False: the run has failed."""


class SettleResult(Contract):
    """Result of `transfers.settle_source`."""

    remarks: tuple[Sentence, ...] = Field(default=(), max_length=REMARKS)
    """What could not be done with a source; it stays where it is."""


class TransferRetry(Retry):
    """Try again from the failed action."""

    settings: bool = False
    """Read `jobsettings.json` again; else the run keeps what it has."""
    action: dict[str, Any] | None = None
    """The failed action with corrected settings; None: as it is."""


class TransferAssign(Contract):
    """Name the queue of an event that no rule matched."""

    queue: QueueName
    by: Person | None = None
    reason: str | None = Field(default=None, max_length=500)


class ActionView(Contract):
    """One action, as people see it."""

    action: str = Field(max_length=20)
    state: str = Field(max_length=10)
    """`done`, `running`, `waiting`, `parked`, `skipped`, `failed` or `open`."""
    files: int = 0
    bytes: int = 0
    note: str | None = Field(default=None, max_length=150)


class ActionDetail(Contract):
    """What else people see of one action, where they look at one transfer."""

    partner: PartnerName | None = None
    place: str | None = Field(default=None, max_length=100)
    """Path at the partner, queue or format that it works with."""
    failed_tries: int = 0
    begun: datetime | None = None
    """When it began, or was begun anew after an answer."""
    ended: datetime | None = None
    """When it was done, left out, or parked."""


class ActionDetails(Contract):
    """Result of the query `actions` of a job: one for each action of the query `status`."""

    actions: tuple[ActionDetail, ...] = Field(default=(), max_length=ACTIONS)


class TransferView(Contract):
    """Result of the query `status`, of both workflows."""

    transfer_id: TransferId
    status: TransferStatus
    queue: QueueName | None = None
    job: SettingsJobName | None = None
    account_id: str | None = Field(default=None, max_length=500)
    file: str | None = Field(default=None, max_length=1_024)
    actions: tuple[ActionView, ...] = Field(default=(), max_length=ACTIONS)
    reason: Sentence | None = None
    waiting_for: Sentence | None = None
    since: datetime | None = None
    receipt: BlobRef | None = None


def transfer_workflow_id(transfer_id: str) -> str:
    """Id of the run that takes an event."""
    return f"transfer/{transfer_id}"


def file_job_id(transfer_id: str) -> str:
    """Id of the run that carries out the job of an event, whether or not it was routed before."""
    return f"{transfer_workflow_id(transfer_id)}/job"


def resend_id(transfer_id: str, number: int) -> str:
    """The id of a transfer that sends the kept copy of another one again, the first time as 1."""
    return transfer_id_of(f"resend/{transfer_id}", str(number))


def redrive_id(transfer_id: str, number: int) -> str:
    """The id of a transfer that carries out a failed one anew, the first time as 1."""
    return transfer_id_of(f"redrive/{transfer_id}", str(number))


class ReceiptInput(Contract):
    """Input of `transfers.receipt`."""

    job: FileJobInput
    steps: tuple[BlobRef, ...] = Field(default=(), max_length=ACTIONS)
    """Those of actions that were done, in order."""
    kept: BlobRef | None = None
    """Files of the kept copy."""
    outcomes: tuple[ReceiptStep, ...] = Field(default=(), max_length=2 * ACTIONS)
    """Of actions that were not carried out, and short ones of actions that were; each follows the
    step whose hash it names."""


class StoredReceipt(Contract):
    """Result of `transfers.receipt`."""

    blob: BlobRef
    steps: int
    sha256: str = Field(max_length=64)
    """Of the last step."""


class KeepCopyInput(Contract):
    """Input of `transfers.keep`: keep a copy of what was written, to send it again."""

    job: FileJobInput
    files: Manifest
    days: int = Field(ge=1, le=3_650)


class KeptCopy(Contract):
    """Result of `transfers.keep`."""

    files: Manifest
    until: date
    """The last day on which it can be sent again."""


class KeptTransfer(KeptCopy):
    """What a row remembers of a transfer that can be sent again."""

    event: FileNotice
    """Names in the settings of its job may refer to it."""


class TransferClosing(Contract):
    """Input of `transfers.close`: the end of a job."""

    job: FileJobInput
    status: TransferStatus
    at: datetime
    settings_job: SettingsJobName | None = None
    file: str | None = Field(default=None, max_length=1_024)
    reason: Sentence | None = None
    by: Person | None = None
    receipt: BlobRef | None = None
    kept: KeptCopy | None = None
    sequence: str | None = Field(default=None, max_length=1_024)
    """The key whose turn is over."""
    size: int | None = None
    """Bytes that the job has read; None: nothing."""


class CopyRetentionInput(Contract):
    """Input of the run that removes copies whose last day is over."""


class CopyRetentionResult(Contract):
    """Result of that run."""

    removed: int


def receipt_blob(transfer_id: str) -> str:
    """Name of the blob that holds the receipt of a transfer."""
    return f"receipts/{transfer_id[:2]}/{transfer_id}.json"


WARNINGS: Final = 20
"""Keys that one step warns of."""


class KeyWarningsInput(Contract):
    """Input of the run that notifies people of keys that expire, and of its step."""

    notices: bool = True
    skip: int = Field(default=0, ge=0)
    """Keys that the run has sent notices about."""


class KeyWarning(Contract):
    """A key that expires, or has."""

    partner: PartnerName
    key: str = Field(max_length=100)
    """Fingerprint, with what kind of key it is."""
    ends: datetime
    step: int
    """30, 14 or 7 days before; 0: it has expired."""
    sentence: Sentence


class KeyWarnings(Contract):
    """Result of `transfers.expiring_keys`: the next of them."""

    warnings: tuple[KeyWarning, ...] = Field(default=(), max_length=WARNINGS)
    """None: there are no more."""


class KeyExpiryResult(Contract):
    """Result of a run that notifies people of keys that expire."""

    keys: int


class TransferProgress(Contract):
    """Heartbeat of an action at an endpoint."""

    files: int = 0
    """That are done."""
    bytes: int = 0
    """Of the file that is not."""


class ReadCursor(Contract):
    """How far a `ReadFile` has come: another attempt continues from there."""

    listing: str = Field(max_length=64)
    """SHA-256 of the files that were found: of other ones nothing counts any more."""
    seen: datetime
    """When they were first found so."""
    done: int = 0
    files: Manifest = Manifest()
    """Those that are done."""
    partial: BlobRef | None = None
    """The beginning of the next one."""


class NamingNote(Contract):
    """That a file is about to get its name at an endpoint, or has it."""

    wanted: str = Field(max_length=1_024)
    path: str = Field(default="", max_length=1_024)
    """Empty: the name was not given after all."""
    sha256: str = Field(max_length=64)
    done: bool = False


_SENTENCE: Final = 500
_MORE: Final = "more remarks"


def first_of(remarks: Sequence[str], more: str = _MORE) -> tuple[str, ...]:
    """As many remarks as a result holds, each once; the last one says how many more there are.

    Args:
        remarks: All of them; each is cut to a sentence of 500 characters.
        more: What the others are called, after their number.
    """
    distinct = list(dict.fromkeys(remark[:_SENTENCE] for remark in remarks))
    if len(distinct) > REMARKS:
        distinct[REMARKS - 1 :] = [_and_more(len(distinct) - REMARKS + 1, more)]
    return tuple(distinct)


def in_one_sentence(remarks: Sequence[str]) -> str:
    """Remarks, one after the other, in 500 characters; the end says how many more there are."""
    for shown in range(len(remarks), 0, -1):
        others = [_and_more(len(remarks) - shown, _MORE)] if shown < len(remarks) else []
        text = "; ".join([*remarks[:shown], *others])
        if len(text) <= _SENTENCE:
            return text
    end = f"; {_and_more(len(remarks) - 1, _MORE)}" if len(remarks) > 1 else ""
    return "".join(remarks[:1])[: _SENTENCE - len(end)] + end


def _and_more(number: int, more: str) -> str:
    return f"and {number:,} {more.removesuffix('s') if number == 1 else more}"


_ROUTES: Final = "the routes"


def in_its_turn(plan: TransferPlan, before: TransferPlan) -> TransferPlan:
    """A plan that was read again, with the turn that its run has; a remark where it would differ.

    A run stands in the line of the key that it has begun with, and gives that turn back.
    """
    if plan.sequence == before.sequence:
        return plan
    known = "without one" if before.sequence is None else f"with {before.sequence[:100]!r}"
    remark = f"SequenceKey has changed meanwhile: this run continues {known}"
    remarks = first_of([remark, *plan.remarks])
    return plan.model_copy(update={"sequence": before.sequence, "remarks": remarks})


def action_destination(action: Action) -> str | None:
    """The partner or queue that an action sends to, as a receipt names it; None: it sends nothing.

    See `where_of`.
    """
    match action:
        case WriteFile() | CallHttp():
            return action.partner
        case FireEvent():
            return fired_to(action.queue)
        case _:
            return None


def fired_to(queue: str | None) -> str:
    """Where an event is sent, for receipts."""
    return _ROUTES if queue is None else f"queue {queue}"


def step_destination(step: ReceiptStep) -> str | None:
    """The partner or queue that an action has sent to; None: it had nothing to send."""
    place = next((file.place for file in step.files), None)
    if place is None or step.action == FireEvent.__name__:
        return place
    return place.partition("/")[0].partition(":")[2]


def is_done_before(order: FileJobInput, index: int, action: Action) -> bool:
    """Whether the failed transfer has done an action: one of its kind there, to the same side."""
    if (index, action.action) not in order.done_before:
        return False
    return dict(order.done_where).get(index, action_destination(action)) == action_destination(
        action
    )


def done_elsewhere(order: FileJobInput, actions: Sequence[Action]) -> Sequence[str]:
    """Remarks on actions that are carried out, since they went elsewhere in the failed transfer."""
    where = dict(order.done_where)
    return [
        f"{index + 1}. {action.action} went to {where[index]} in transfer "
        f"{(order.redriven_from or '')[:12]}, and is carried out for {action_destination(action)}"
        for index, action in enumerate(actions)
        if (index, action.action) in order.done_before and not is_done_before(order, index, action)
    ]


_S = TransferStatus

_STANDS: Final = MappingProxyType(
    {
        _S.INVALID: "is invalid: its message is no event",
        _S.GARBAGE: "is refused: its event lacks a field",
        _S.READ_MESSAGE: "has not ended: its actions are under way",
        _S.ASSIGNED: "has not ended: its job is about to begin",
        _S.NO_ASSIGNED: "waits for a queue: no rule matches it",
        _S.SUCCEEDED: "has succeeded",
        _S.FAILED: "has failed",
    }
)


def status_label(status: TransferStatus) -> str:
    """What follows "the transfer": `has succeeded`, `waits for a queue`."""
    return _STANDS[status]


def unrouted_reason(route: EventRoute) -> str:
    """Why an event has no queue, for people."""
    if route.problem is not None:
        named = "" if route.rule is None else f"rule {route.rule}: "
        return f"{named}{route.problem}"[:500]
    if not route.rules:
        return "there are no routing rules"
    nearest = "; ".join(f"{each.queue}/{each.rule}: {each.reason}" for each in route.others[:3])
    return f"none of {route.rules:,} rules matches; {nearest}"[:500]
