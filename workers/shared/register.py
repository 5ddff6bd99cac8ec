"""What is known of a pipeline as a whole: the type of every register.

A register is light: whatever needs Temporal's SDK, an adapter or an activity is imported inside
the functions that it names, so that commands which only need a title or an id load none of it.
What stands above a register, services, bridges, gateway and commands, uses the catalogue; a
register names it by an entry point `module:attribute` and does not import it.
"""

import importlib
import inspect
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from workers.shared.health import Health
from workflows.shared.contracts import Contract, Origin
from workflows.shared.dependencies import Dependency
from workflows.shared.errands import ERRAND, ERRAND_PREFIX
from workflows.shared.records import ROW_RETENTION, RUN_SWEEPER
from workflows.shared.run_webhooks import RUN_WEBHOOKS, SCHEDULE

if TYPE_CHECKING:
    from temporalio.client import Client

    from activities.shared.dependencies import NamedProbe, Probe
    from adapters.database.records import KeptRows
    from adapters.ports.records import OpenRows
    from workers.shared.declared_schedules import Declared
    from workers.shared.resources import Resources

ReadSettings = Callable[[Mapping[str, str]], Any]
"""Reads and checks one group of settings; raises `SettingsError`."""

_ACTIVITY: Final = "__temporal_activity_definition"


@dataclass(frozen=True)
class RunRow:
    """What names the row of a run in the table of runs, as in `adapters/database/models`."""

    id: str
    key: str
    short: str


@dataclass(frozen=True)
class RunKind:
    """One kind of run of a pipeline, recognised by its workflow id."""

    workflow: str
    """Name of the workflow type, as its workers know it."""
    pattern: re.Pattern[str]
    """Matches the whole of a workflow id of this kind."""
    parse: Callable[[re.Match[str]], Any]
    """The typed key in an id that matched."""
    title: Callable[[Any], str | None] = lambda key: None
    """What a person knows the run by; None: its file name, or its id."""
    page: Callable[[Any], str] | None = None
    """Path of the gateway's own page of a run; None: Temporal's page is linked."""
    identifier: Callable[[Any], str] | None = None
    """What the HTTP API names a run by, where it has an interface for this kind."""
    status: type[Contract] | None = None
    """Result of the query `status`; None: the kind has no such query."""
    answers: Mapping[str, type[Contract]] = field(default_factory=dict[str, type[Contract]])
    """Updates that people send to a run (`retry`, `skip`, `fail`, `cancel`), and their argument."""
    events: Mapping[str, type[Contract]] = field(default_factory=dict[str, type[Contract]])
    """Verbs that reach a run as an event of its pipeline, where answers are updates; the event."""
    report: bool = False
    """It may have a report of rejected rows."""
    states: Sequence[str] = ()
    """Values of the search attribute `State` that `docflow status` counts, most urgent first."""
    closed_may_need_attention: bool = False
    """A run that has ended stays in the inbox while it needs attention, until its id runs again."""
    parks_alike: bool = False
    """Many of its runs may be parked for one cause: their notices are sent as few."""
    scheduled: bool = False
    """A schedule starts it: only Temporal knows of it."""
    row: Callable[[Any], RunRow] | None = None
    """What names its row in the table of runs, by its key; None: the kind has no rows there."""
    is_document: bool = True
    """Its runs are documents, or what is made for them, and counted when they end."""

    @property
    def verbs(self) -> Sequence[str]:
        """What people may do to a run, beyond looking at it."""
        return (*self.answers, *self.events, *(("report",) if self.report else ()))

    @property
    def prefix(self) -> str:
        """The text before the first slash, with which every id of this kind begins."""
        return self.pattern.pattern.partition("/")[0]


def scheduled(schedule: str, workflow: str) -> RunKind:
    """The runs that a schedule starts: the server appends the time to the id that it is given."""
    pattern = re.compile(f"schedule/{re.escape(schedule)}-(?P<at>[0-9].*)")
    return RunKind(workflow, pattern, lambda found: found["at"], scheduled=True, is_document=False)


def _errands(pipeline: str) -> RunKind:
    """The runs that people start to ask something of a pipeline's workers."""
    pattern = re.compile(f"{ERRAND_PREFIX}/{re.escape(pipeline)}/(?P<kind>[a-z-]+)/[0-9a-f]{{32}}")
    return RunKind(ERRAND, pattern, lambda found: found["kind"], scheduled=True, is_document=False)


@dataclass(frozen=True)
class Run:
    """A workflow id, recognised."""

    workflow_id: str
    pipeline: "RunGroup"
    """What it belongs to."""
    kind: RunKind
    key: Any


@dataclass(frozen=True)
class Context:
    """What a process has opened, for pipelines and bridges to open their own from."""

    environment: Mapping[str, str]
    client: "Client"
    common: "Resources | None" = None
    """None: nothing in this process needs them."""
    health: Health = field(default_factory=Health)
    """Where the process, or the bridge that this is for, says that it cannot work."""

    @property
    def resources(self) -> "Resources":
        """Database, blobs and what else all pipelines share."""
        assert self.common is not None, "this process opened no common resources"
        return self.common


DoErrand = Callable[[Context, Any, Mapping[str, Any], str], Awaitable[Any]]
"""Does what a person asks, over what the worker has opened and its own resources, with arguments of
JSON and who asks; gives JSON, or raises a `ServiceError`."""

QUEUE_ERRANDS: Final[Mapping[str, str]] = {
    "dead-letters": "workers.shared.services.queue_errands:dead_letters",
    "send-again": "workers.shared.services.queue_errands:send_again",
}
"""Of a pipeline whose messages come from a queue."""


@dataclass(frozen=True)
class Resubmission:
    """How messages that a bridge has rejected come to its queue again."""

    setting: str
    """Names the queue."""
    queue: Callable[[Mapping[str, str]], str | None]
    """Name of the queue, as in the record of rejected messages; None: the setting is not set."""
    owns: Callable[[Mapping[str, str], str], bool] | None = None
    """Whether a queue is one of many that the bridge receives from; None: it has one."""
    sender: str | None = None
    """Entry point of a `ServiceBusSender`; None: docflow sends nothing to the queue."""
    instead: str = ""
    """What a person does where there is no sender."""
    dead_letters: str | None = None
    """Entry point of a function that opens its dead letters from the environment; None: the
    messages that the queue itself gives up are seen by its own means alone."""


@dataclass(frozen=True)
class Bridge:
    """What turns the messages of one queue into runs; `docflow bridge NAME`."""

    name: str
    help: str
    """Of its command: one sentence."""
    settings: ReadSettings
    run: str
    """Entry point of what receives, a `Receive` (`workers/shared/process.py`)."""
    with_worker: bool = True
    """Part of `docflow worker PIPELINE --with-bridge`."""
    needs_resources: bool = True
    """It uses the resources that all pipelines share."""
    requirements: str | None = None
    """Entry point of a function that opens what `docflow setup` checks for it (`Requirement`), from
    the environment, as an asynchronous context; None: nothing."""
    resubmission: Resubmission | None = None
    """None: it records no rejected messages."""


@dataclass(frozen=True)
class Lane:
    """A task queue beside that of a pipeline, for activities that must not hold others up."""

    name: str
    """As in `docflow worker PIPELINE --lane NAME`."""
    task_queue: str
    slots: Callable[[Any], int]
    """Activities at once of a worker, from the pipeline's own resources."""
    activities: Callable[["Resources", Any], Sequence[object]]
    """Objects whose methods are served there, over common and own resources."""
    workflows: Callable[[], Sequence[type]] | None = None
    """Workflows that run there, with all that a run needs; None: none does."""
    tuned: Callable[[Any], bool] = lambda own: False
    """Whether Temporal's tuner gives out fewer slots while memory or processor are scarce."""
    rate: float | None = None
    """Activities that all of its workers together begin in a second; None: no limit."""


@dataclass(frozen=True, kw_only=True)
class Readers:
    """Processes in which a worker or the gateway reads files: a hostile one harms no other."""

    memory_bytes: int
    """Address space of one of them, at most."""
    memory_setting: str | None = None
    """Setting, in MB, that takes the place of it."""
    at_once: int = 0
    """How many there are, if no slots bound them."""
    slots: Sequence[str] = ()
    """Settings of slots, each of which may have one."""
    kept_bytes: int = 0
    """Memory of what is kept ready for each of them."""
    in_activity_bytes: bool = False
    """Whether `Pipeline.activity_bytes` counts them already."""
    in_gateway: bool = False
    """Whether they belong to the gateway, not to workers."""


@dataclass(frozen=True)
class MessagedDocument:
    """A document that a message has brought, whatever pipeline takes it."""

    type: str
    project: str
    task: str
    """Names the work within the project: the same for every message about it."""
    origin: Origin
    blob_name: str
    filename: str
    scope: Mapping[str, str]
    """What its rows belong to."""
    sheet: str | None = None
    encoding: str | None = None
    unknown_fields: Sequence[str] = ()
    """Fields of the message that docflow does not use."""


class DocumentRuns(Protocol):
    """Starts runs for documents whose types another pipeline than that of the message has."""

    async def start(self, document: MessagedDocument) -> tuple[str, bool]:
        """Start a run, or find the one that the same message has started.

        Returns:
            Its workflow id, and whether it was started now.

        Raises:
            RefusedMessage: It can never be started, or another message has started it.
            PortError: The document cannot be looked at.
            RPCError: Temporal does not take it.
        """
        ...


@dataclass(frozen=True, eq=False, kw_only=True)
class RunGroup:
    """Runs that people list, show and answer under one name."""

    name: str
    """Value of the search attribute `Pipeline`."""
    title: str
    """What a person calls one of its runs."""
    runs: Sequence[RunKind]
    naming: str | None = None
    """How a person may write an id; None: as it is."""
    corrects: Collection[str] = ()
    """Answers that take a corrected input."""
    changes: Collection[str] = ()
    """Answers that take a corrected document, and new values for fields of its message."""

    @property
    def states(self) -> Sequence[str]:
        """Values of the search attribute `State` of all kinds of run."""
        return tuple(dict.fromkeys(str(state) for kind in self.runs for state in kind.states))

    @property
    def has_rows(self) -> bool:
        """Whether its runs are in the table of runs; else Temporal alone knows them."""
        return False

    @property
    def kinds(self) -> Sequence[RunKind]:
        """Every kind of run, by which ids are recognised."""
        return self.runs

    def recognise(self, workflow_id: str) -> Run | None:
        """The run of this group that an id names; None: it names none."""
        for kind in self.kinds:
            if found := kind.pattern.fullmatch(workflow_id):
                return Run(workflow_id, self, kind, kind.parse(found))
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class Pipeline(RunGroup):
    """Everything that is known of one pipeline as a whole.

    Its name is the word that names its packages, its task queue and its commands.
    """

    task_queue: str
    contracts: str
    """Package of its contracts; the contract lock holds all of them."""
    activities_package: str
    """Package whose activities its workers must serve, all of them."""
    workflows: Callable[[], Sequence[type]]
    settings: ReadSettings
    """What its workers need beyond the settings of the common resources."""
    open: Callable[[Context, Any], AbstractAsyncContextManager[Any]]
    """Opens the pipeline's own resources, with its settings."""
    activities: Callable[["Resources", Any], Sequence[object]]
    """Objects whose methods are its activities, over common and own resources."""
    worker_help: str
    """Of `docflow worker NAME`: one sentence."""
    libraries: Sequence[str] = ()
    """Modules that its workers need, which the extra `docflow[NAME]` installs."""
    lanes: Sequence[Lane] = ()
    """Task queues beside its own; its workers serve all of them, or one that is named."""
    lanes_of_settings: Callable[[Mapping[str, str]], Sequence[Lane]] | None = None
    """Those that an installation names; raises `SettingsError`. None: it names none."""
    probes: Callable[[Any], Mapping[Dependency, "Probe"]] = lambda own: {}
    """Checks of what its own resources depend on, beside what all pipelines share."""
    named_probes: Callable[[Any], Mapping[Dependency, "NamedProbe"]] = lambda own: {}
    """The same of what there are many, by name."""
    own_states: Sequence[str] = ()
    """States that it gives its runs itself, in the table of runs."""
    rejected_rows: Sequence[str] = ()
    """Names of the counts of its runs, in the table of runs, that are of rejected rows."""
    tells_of_runs: bool = False
    """Its workers tell receivers what becomes of the runs of every pipeline."""
    open_rows: Callable[[Any], "OpenRows"] | None = None
    """Its rows that runs leave open when they are terminated, from its own resources; a schedule
    of its workers closes them. None: it keeps no rows of its runs."""
    kept_rows: Callable[["Resources"], Awaitable[Sequence["KeptRows"]]] | None = None
    """Its rows that are kept for a time, asked for before each removal; a schedule of its workers
    removes them. None: it has none, or a retention of its own."""
    activity_slots: int = 4
    """Heartbeating activities at once: each may hold a file and a database connection."""
    activity_bytes: int = 64 << 20
    """Memory of one of them, beyond that of the process: what `activity_slots` are bounded by."""
    local_slots: int = 16
    """Short steps at once."""
    readers: Callable[[], Sequence[Readers]] = tuple
    """Processes in which its files are read: what a container needs beyond `activity_bytes`."""
    workflow_slots: int = 100
    """Workflow tasks that each of its workers has at once, those that wait for a short step
    included. With fewer of them, more of those that wait take turns by their fairness keys."""
    cached_runs: int = 500
    """Runs kept in memory; an evicted one costs 12 ms when it continues."""
    enabled_by: str | None = None
    """Setting without which `docflow worker all` leaves the pipeline out."""
    optional: bool = True
    """An installation may do without its workers; `docflow status` misses none."""
    bridges: Sequence[Bridge] = ()
    errands: Mapping[str, str] = field(default_factory=dict[str, str])
    """What people may ask of its workers, because only those have the keys: kind to the entry point
    of a `DoErrand`."""
    schedules: Callable[[], Mapping[str, "Declared"]] = dict
    """Schedule id to what its workers keep Temporal in line with."""
    schedules_of_settings: Callable[[Mapping[str, str]], Mapping[str, "Declared"] | None] = (
        lambda environment: None
    )
    """Those that an installation declares; None: its settings name no file that does.

    Raises `SettingsError`.
    """
    schedule_prefixes: Sequence[str] = ()
    """What the ids of those begin with: one that is declared no longer is deleted."""
    commands: Mapping[str, str] = field(default_factory=dict[str, str])
    """Command group of `docflow` to the entry point `module:attribute` of its typer app, of a
    pipeline that a program adds to the catalogue; `workers/commands.py` lists docflow's own."""
    documents: str | None = None
    """Entry point of a function that yields `DocumentRuns` by the name of a type, from a `Context`:
    for documents that messages of another pipeline bring. None: it takes none."""
    requirements: str | None = None
    """Entry point of a function that opens what its workers need (`Requirement`), from the
    environment, as an asynchronous context; None: nothing beyond what all pipelines need."""
    checks: str | None = None
    """Entry point of a function that yields further checks of `docflow status`."""
    gateway: str | None = None
    """Entry point of a function that opens its `GatewayPart`: API and pages of its own.

    None: the gateway shows its runs in the inbox only.
    """
    gateway_settings: str | None = None
    """Entry point of the `Settings` that the function is given; None: it has none."""
    replay_cases: str | None = None
    """Module with `CASES_OF`, workflow to recorded cases; None: `tests.replay.NAME`."""

    @property
    def has_lanes(self) -> bool:
        """Whether it has task queues beside its own."""
        return bool(self.lanes) or self.lanes_of_settings is not None

    def lanes_in(self, environment: Mapping[str, str]) -> Sequence[Lane]:
        """All of its task queues beside its own.

        Raises:
            SettingsError: The settings that name some are wrong.
        """
        named = () if self.lanes_of_settings is None else self.lanes_of_settings(environment)
        return (*self.lanes, *named)

    def left_out(self, environment: Mapping[str, str]) -> str | None:
        """Why a worker of all pipelines does not work on this one; None: it does."""
        # A blank setting is not set: its settings are read by the same rule.
        if self.enabled_by is None or environment.get(self.enabled_by, "").strip():
            return None
        return f"{self.enabled_by} is not set"

    def available(self, environment: Mapping[str, str]) -> bool:
        """Whether a worker of all pipelines works on this one."""
        return self.left_out(environment) is None

    @property
    def has_rows(self) -> bool:
        """Whether its runs are in the table of runs; else Temporal alone knows them."""
        return self.open_rows is not None

    @property
    def sweep_id(self) -> str | None:
        """Id of the schedule that closes the rows of terminated runs; None: there is none."""
        return None if self.open_rows is None else f"{self.name}-run-sweeper"

    @property
    def retention_id(self) -> str | None:
        """Id of the schedule that removes old rows; None: there is none."""
        return None if self.kept_rows is None else f"{self.name}-retention"

    @property
    def kinds(self) -> Sequence[RunKind]:
        """Its own, the sweeps of its rows, the removal of old ones, looks, and errands."""
        looks = SCHEDULE if self.tells_of_runs else None
        shared = (
            (self.sweep_id, RUN_SWEEPER),
            (self.retention_id, ROW_RETENTION),
            (looks, RUN_WEBHOOKS),
        )
        errands = (_errands(self.name),) if self.errands else ()
        return (
            *self.runs,
            *(scheduled(id, name) for id, name in shared if id is not None),
            *errands,
        )


def activities_of(*objects: object) -> Sequence[Callable[..., Any]]:
    """The methods of some objects that are activities, found by what `activity.defn` leaves.

    Looked up on the class, so that no property of an object is evaluated.
    """
    return [
        getattr(each, name)
        for each in objects
        for name, method in inspect.getmembers(type(each), inspect.isfunction)
        if hasattr(method, _ACTIVITY)
    ]


def load(entry: str) -> Any:
    """What an entry point `module:attribute` names."""
    module, _, attribute = entry.partition(":")
    return getattr(importlib.import_module(module), attribute)


def recognise(groups: Iterable[RunGroup], workflow_id: str) -> Run | None:
    """The run that a workflow id names, of whichever group; None: it is of none."""
    return next(filter(None, (each.recognise(workflow_id) for each in groups)), None)


@dataclass(frozen=True)
class Check:
    """One part of the installation."""

    part: str
    up: bool
    says: str


@dataclass(frozen=True)
class PipelineView:
    """What Temporal knows of a pipeline."""

    workers: int
    """How many poll its task queue."""
    open: int
    """Runs that have not ended."""
    waiting: int
    """Those that wait for a person: what the inbox shows of the pipeline."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Runs by state, most urgent first, within Temporal's retention."""
    lanes: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many workers poll each further task queue, by the name of the lane."""
    backlog: int = 0
    """Tasks that wait in its task queues until a worker takes them, as far as Temporal knows."""

    @property
    def idle_lanes(self) -> Sequence[str]:
        """Lanes that no worker polls: their tasks wait."""
        return [name for name, workers in self.lanes.items() if not workers]
