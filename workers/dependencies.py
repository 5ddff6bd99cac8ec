"""What every worker serves beside its pipelines: waits for dependencies, outages, sweeps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from temporalio.client import Client

from activities.dependencies import Dependencies, NamedProbe, Probe, scratch_probe
from activities.row_retention import RowRemoval
from activities.run_sweep import RunSweep
from adapters.temporal.outages import TemporalOutages
from adapters.temporal.runs import TemporalRunEnds
from contracts.dependencies import Dependency
from workers.pipelines.base import Pipeline
from workers.resources.common import Resources
from workflows.notice_delivery import NoticeDelivery
from workflows.outage import Outage
from workflows.rejection_record import RejectionRecord
from workflows.row_retention import RowRetention
from workflows.run_sweeper import RunSweeper

COMMON_WORKFLOWS: Final[Sequence[type]] = (
    Outage,
    RunSweeper,
    RowRetention,
    NoticeDelivery,
    RejectionRecord,
)

SETTINGS: Final[Mapping[Dependency, Sequence[str]]] = {
    Dependency.DATABASE: ("DATABASE_URL",),
    # A folder of blobs names its own.
    Dependency.BLOB_STORE: ("AZURE_STORAGE_CONNECTION_STRING",),
    Dependency.SCRATCH_DISK: ("DOCFLOW_SCRATCH",),
    Dependency.SCANNER: ("CLAMD_ADDRESS",),
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
    rows = {} if pipeline.open_rows is None else {pipeline.name: pipeline.open_rows(own)}
    return RunSweep(rows, TemporalRunEnds(client), common.scratch)


def row_removal(common: Resources, pipeline: Pipeline) -> RowRemoval:
    """What removes rows of a pipeline that are no longer kept.

    Args:
        common: What all pipelines share.
        pipeline: The register.
    """
    kept = {} if pipeline.kept_rows is None else {pipeline.name: pipeline.kept_rows(common)}
    return RowRemoval(kept, common.blobs)


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
    return Dependencies(probes, SETTINGS, TemporalOutages(client), common.scratch, named)
