"""What every worker serves beside its pipelines: waits for dependencies, and runs of outages."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from temporalio.client import Client

from activities.dependencies import Dependencies, Probe, scratch_probe
from adapters.temporal.outages import TemporalOutages
from contracts.dependencies import Dependency
from workers.pipelines.base import Pipeline
from workers.resources.common import Resources
from workflows.notice_delivery import NoticeDelivery
from workflows.outage import Outage

COMMON_WORKFLOWS: Final[Sequence[type]] = (Outage, NoticeDelivery)

SETTINGS: Final[Mapping[Dependency, Sequence[str]]] = {
    Dependency.DATABASE: ("DATABASE_URL",),
    Dependency.BLOB_STORE: ("AZURE_STORAGE_CONNECTION_STRING",),
    Dependency.CLOUD: ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"),
}
"""Those that say where a dependency is, and who asks."""


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
        Dependency.DATABASE: common.database.probe,
        Dependency.BLOB_STORE: common.blobs.probe,
        Dependency.SCRATCH_DISK: scratch_probe(common.scratch),
    }
    for pipeline, own in opened:
        probes.update(pipeline.probes(own))
    return Dependencies(probes, SETTINGS, TemporalOutages(client), common.scratch)
