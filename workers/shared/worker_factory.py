"""Workers of a pipeline, one for each task queue, and what every worker serves beside it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, Final

from temporalio.client import Client
from temporalio.worker import (
    FixedSizeSlotSupplier,
    Interceptor,
    PollerBehaviorAutoscaling,
    ResourceBasedSlotConfig,
    ResourceBasedSlotSupplier,
    ResourceBasedTunerConfig,
    Worker,
    WorkerTuner,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from activities.shared.dependencies import Dependencies, NamedProbe, Probe, scratch_probe
from activities.shared.errands import Errands
from activities.shared.notifications import NotificationSending
from activities.shared.records import Rejections, RowRemoval, RunSweep
from adapters.database.runs import AcceptedRows, SqlRuns
from adapters.ports.records import OpenRows
from adapters.temporal import TemporalOutages, TemporalRunEnds
from workers.shared.machine import Slots
from workers.shared.register import Context, Lane, Pipeline, activities_of
from workers.shared.resources import LOG, Resources
from workers.shared.services.errands import errands_of
from workers.shared.services.run_notifications import NotificationComposer, pipeline_of
from workers.shared.settings.common import AddressSettings
from workflows.shared.dependencies import Dependency
from workflows.shared.errand_workflow import Errand
from workflows.shared.notifications import WANTED, NotificationKind, NotificationPolicies
from workflows.shared.record_workflows import (
    RejectionRecord,
    RowRetention,
    RunSweeper,
    RunWebhooks,
)
from workflows.shared.run_notifications import NoticeDelivery
from workflows.shared.waiting import Outage


@dataclass(frozen=True)
class OpenNotifications:
    """What every worker of a process is given."""

    activities: NotificationSending
    interceptor: "NotificationInterceptor"


class NotificationInterceptor(Interceptor):
    """Lets workflows ask whether a notice of the end of a run is wanted.

    Args:
        is_wanted: Of a kind, by the id of the run.
    """

    def __init__(self, is_wanted: Callable[[str, NotificationKind], bool]) -> None:
        self._is_wanted = is_wanted

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        """Add the question to what a workflow may call outside of its sandbox."""
        input.unsafe_extern_functions[WANTED] = self._is_wanted
        return None


def open_notices(
    common: Resources, addresses: AddressSettings, namespace: str
) -> OpenNotifications:
    """What sends the notices of a process, once for all of its workers."""
    policies, channels = common.policies, common.notices
    composer = NotificationComposer(
        policies, addresses.public_url, addresses.temporal_ui, namespace
    )
    return OpenNotifications(
        NotificationSending(channels, policies, composer.compose, composer.cause),
        NotificationInterceptor(is_notification_enabled(policies, channels)),
    )


def is_notification_enabled(
    policies: NotificationPolicies, channels: Mapping[str, Any]
) -> Callable[[str, NotificationKind], bool]:
    """Whether the policy of a run's pipeline wants a kind of notice, and there is a way for it."""

    def is_wanted(workflow_id: str, kind: NotificationKind) -> bool:
        return LOG not in channels and kind in policies.of(pipeline_of(workflow_id)).kinds

    return is_wanted


COMMON_WORKFLOWS: Final[Sequence[type]] = (
    Errand,
    Outage,
    RunSweeper,
    RowRetention,
    NoticeDelivery,
    RejectionRecord,
    RunWebhooks,
)

SETTINGS: Final[Mapping[Dependency, Sequence[str]]] = {
    Dependency.DATABASE: ("DATABASE_URL",),
    # A folder of blobs names its own.
    Dependency.BLOB_STORE: ("AZURE_STORAGE_CONNECTION_STRING",),
    Dependency.SCRATCH_DISK: ("DOCFLOW_SCRATCH",),
    Dependency.SCANNER: ("CLAMD_ADDRESS",),
    Dependency.TARGET: ("DOCFLOW_TYPE_DATABASES",),
    Dependency.CLOUD: ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"),
}
"""Those that say where a dependency is, and who asks."""


def run_sweep(client: Client, common: Resources, pipeline: Pipeline, own: Any) -> RunSweep:
    """What closes rows of a pipeline whose runs are over.

    Args:
        client: Of the namespace of these runs.
        common: What all pipelines share.
        pipeline: The register.
        own: What the pipeline opened for itself.
    """
    rows: dict[str, Sequence[OpenRows]] = {}
    if pipeline.open_rows is not None:
        accepted = AcceptedRows(common.database, pipeline.name)
        rows[pipeline.name] = (pipeline.open_rows(own), accepted)
    return RunSweep(rows, TemporalRunEnds(client), common.scratch)


def row_removal(common: Resources, pipeline: Pipeline) -> RowRemoval:
    """What removes rows of a pipeline that are no longer kept.

    Args:
        common: What all pipelines share.
        pipeline: The register.
    """
    kept = pipeline.kept_rows
    asked = {} if kept is None else {pipeline.name: partial(kept, common)}
    return RowRemoval(asked, common.blobs)


def _webhook_steps(common: Resources, pipeline: Pipeline) -> Sequence[object]:
    if not pipeline.tells_of_runs:
        return ()
    # Imported by those who post: a client of HTTP takes 5 MB of memory.
    from workers.shared.run_webhooks import webhook_steps

    return (webhook_steps(common),)


def open_dependencies(
    client: Client, common: Resources, opened: Iterable[tuple[Pipeline, Any]]
) -> Dependencies:
    """What checks the dependencies of a process, once for all of its workers.

    Args:
        client: Of the namespace whose runs wait.
        common: What all pipelines share.
        opened: The pipelines of the process, each with what it opened for itself.
    """
    probes: dict[Dependency, Probe] = {
        Dependency.DATABASE: common.database.probe_by_writing,
        Dependency.BLOB_STORE: common.blobs.probe,
        Dependency.SCRATCH_DISK: scratch_probe(common.scratch),
    }
    named: dict[Dependency, NamedProbe] = {}
    for pipeline, own in opened:
        probes.update(pipeline.probes(own))
        named.update(pipeline.named_probes(own))
    outages, runs = TemporalOutages(client), SqlRuns(common.database)
    return Dependencies(probes, SETTINGS, outages, common.scratch, named, runs)


_POLLERS: Final = PollerBehaviorAutoscaling(minimum=1, maximum=10, initial=2)
_FEW_LANES: Final = 4
"""A process that serves no more asks for workflow tasks as the SDK does by itself: one poller for
runs that begin, four for those that are under way. Runs that have begun end before others begin,
which is how a single event passes a burst; but each lane costs five requests at a time, and the
server bears so many for a namespace."""

_TARGET: Final = 0.8
"""Share of memory and processor beyond which a tuner gives out no more slots."""


@dataclass(frozen=True)
class Shared:
    """What the workers of a process share."""

    dependencies: Dependencies
    notices: OpenNotifications
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings, for errands."""


def _shared(client: Client, common: Resources, opened: Sequence[tuple[Pipeline, Any]]) -> Shared:
    """What is shared where no process has opened it: notices link to no page."""
    return Shared(
        open_dependencies(client, common, opened),
        open_notices(common, AddressSettings.read({}), client.namespace),
    )


def _common_activities(
    client: Client, pipeline: Pipeline, common: Resources, own: Any, shared: Shared
) -> Sequence[object]:
    """Objects whose methods every worker serves that has workflows."""
    return (
        shared.dependencies,
        shared.notices.activities,
        run_sweep(client, common, pipeline, own),
        row_removal(common, pipeline),
        Rejections(common.rejected),
        *_webhook_steps(common, pipeline),
        Errands(errands_of(Context(shared.environment, client, common), pipeline, own)),
    )


def build_worker(
    client: Client,
    pipeline: Pipeline,
    common: Resources,
    own: Any,
    shared: Shared | None = None,
    slots: Slots | None = None,
) -> Worker:
    """A worker for one pipeline.

    Args:
        client: Of the namespace whose runs are worked on.
        pipeline: Its register.
        common: What all pipelines share.
        own: What the pipeline opened for itself.
        shared: By the workers of a process; None: this worker is the only one.
        slots: What it does at once; None: what the register says.
    """
    slots = slots or Slots(pipeline.activity_slots, pipeline.local_slots)
    shared = shared or _shared(client, common, [(pipeline, own)])
    return Worker(
        client,
        task_queue=pipeline.task_queue,
        workflows=[*pipeline.workflows(), *COMMON_WORKFLOWS],
        activities=activities_of(
            *pipeline.activities(common, own),
            *_common_activities(client, pipeline, common, own, shared),
        ),
        interceptors=[shared.notices.interceptor],
        max_concurrent_activities=slots.activities,
        max_concurrent_local_activities=slots.local,
        max_concurrent_workflow_tasks=pipeline.workflow_slots,
        max_cached_workflows=pipeline.cached_runs,
        # A request to cancel reaches an activity with the answer to a heartbeat.
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        # A chunk in progress may finish; the next attempt resumes from its mark.
        graceful_shutdown_timeout=timedelta(seconds=5),
    )


def build_lanes(
    client: Client,
    pipeline: Pipeline,
    common: Resources,
    own: Any,
    only: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    shared: Shared | None = None,
    slots: Slots | None = None,
) -> Sequence[Worker]:
    """A worker for each task queue that a pipeline has beside its own.

    Args:
        client: Of the namespace whose runs are worked on.
        pipeline: Its register.
        common: What all pipelines share.
        own: What the pipeline opened for itself.
        only: Name of the one lane that is served; None: all of them are.
        environment: Settings that name lanes; None: there are none.
        shared: By the workers of a process; None: those of this pipeline alone.
        slots: What the process does at once for the pipeline; None: what the register says.
    """
    slots = slots or Slots(pipeline.activity_slots, pipeline.local_slots)
    lanes = [each for each in pipeline.lanes_in(environment or {}) if only in (None, each.name)]
    if any(each.workflows for each in lanes):
        shared = shared or _shared(client, common, [(pipeline, own)])
    pollers = None if len(lanes) <= _FEW_LANES else _POLLERS
    return [
        _lane(client, pipeline, common, own, lane, shared, slots.local, pollers) for lane in lanes
    ]


def _lane(
    client: Client,
    pipeline: Pipeline,
    common: Resources,
    own: Any,
    lane: Lane,
    shared: Shared | None,
    local_slots: int,
    pollers: PollerBehaviorAutoscaling | None,
) -> Worker:
    activities = lane.activities(common, own)
    slots = lane.slots(own)
    options: dict[str, Any] = (
        {"tuner": _tuner(slots)}
        if lane.tuned(own)
        else {"max_concurrent_activities": slots, "max_concurrent_local_activities": local_slots}
    )
    if lane.workflows is not None:
        assert shared is not None
        activities = (*activities, *_common_activities(client, pipeline, common, own, shared))
        options |= {
            "workflows": [*lane.workflows(), *COMMON_WORKFLOWS],
            "interceptors": [shared.notices.interceptor],
            "max_concurrent_workflow_tasks": pipeline.workflow_slots,
            "max_cached_workflows": pipeline.cached_runs,
            "activity_task_poller_behavior": _POLLERS,
        }
        if pollers is not None:
            # A process may serve many of them: as many ask for work as there is.
            options["workflow_task_poller_behavior"] = pollers
    return Worker(
        client,
        task_queue=lane.task_queue,
        activities=activities_of(*activities),
        max_task_queue_activities_per_second=lane.rate,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
        graceful_shutdown_timeout=timedelta(seconds=5),
        **options,
    )


def _tuner(slots: int) -> WorkerTuner:
    """At most so many activities at once, and fewer while memory or processor are scarce."""
    fixed = FixedSizeSlotSupplier(1)
    return WorkerTuner.create_composite(
        workflow_supplier=fixed,
        activity_supplier=ResourceBasedSlotSupplier(
            ResourceBasedSlotConfig(minimum_slots=1, maximum_slots=slots),
            ResourceBasedTunerConfig(target_memory_usage=_TARGET, target_cpu_usage=_TARGET),
        ),
        local_activity_supplier=fixed,
        nexus_supplier=fixed,
    )
