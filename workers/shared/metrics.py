"""docflow's own metrics, on the endpoint of Temporal's SDK; docs/runbook.md describes them.

A process measures from `measuring` on. If nothing measures, as in commands and functions,
counting does nothing.
"""

import logging
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from temporalio.common import MetricMeter
from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from workers.shared.errors import SettingsError
from workers.shared.health_server import authority, listener

MESSAGES: Final = "docflow_messages_total"
RESPONSES: Final = "docflow_responses_total"
RUNS: Final = "docflow_runs"
LONGEST_WAIT: Final = "docflow_longest_wait_seconds"
OUTAGE: Final = "docflow_outage_seconds"
REJECTED: Final = "docflow_rejected_messages"
OLDEST_REJECTED: Final = "docflow_oldest_rejected_seconds"

_DESCRIPTIONS: Final[Mapping[str, str]] = {
    MESSAGES: "Messages that a bridge has decided about",
    RESPONSES: "Answers of the gateway",
    RUNS: "Open runs",
    LONGEST_WAIT: "How long the run has waited that has waited longest for a person",
    OUTAGE: "For how long something that docflow needs has not been usable",
    REJECTED: "Rejected messages that were not sent again",
    OLDEST_REJECTED: "Age of the oldest of them",
}
_METER: ContextVar[MetricMeter] = ContextVar("meter")


@contextmanager
def measuring(meter: MetricMeter) -> Generator[None]:
    """Measure what is done inside the block, tasks of it included."""
    token = _METER.set(meter)
    try:
        yield
    finally:
        _METER.reset(token)


def count(name: str, labels: Mapping[str, str]) -> None:
    """Add one to a counter."""
    _meter().create_counter(name, _DESCRIPTIONS[name]).add(1, labels)


def show(name: str, value: float, labels: Mapping[str, str]) -> None:
    """Set a gauge."""
    _meter().create_gauge_float(name, _DESCRIPTIONS[name]).set(value, labels)


def _meter() -> MetricMeter:
    return _METER.get(MetricMeter.noop)


_CORE: Final = "temporalio.core"


def process_runtime(host: str, metrics_port: int | None) -> Runtime:
    """A runtime for one process.

    Args:
        host: Where metrics are served.
        metrics_port: Port of `/metrics`; None: none are served.

    Raises:
        SettingsError: The host is not an address of this machine, or the port is taken.
    """
    logs = LoggingConfig(
        filter=TelemetryFilter(core_level="WARN", other_level="ERROR"),
        forwarding=LogForwardingConfig(
            logger=logging.getLogger(_CORE), prepend_target_on_message=False
        ),
    )
    if metrics_port is None:
        return Runtime(telemetry=TelemetryConfig(logging=logs))
    # The SDK takes no names, and does not say whether address or port is at fault.
    with listener(host, metrics_port, "metrics port") as probe:
        address = authority(probe)
    try:
        metrics = PrometheusConfig(bind_address=address)
        return Runtime(telemetry=TelemetryConfig(logging=logs, metrics=metrics))
    except ValueError as error:
        raise SettingsError(
            f"metrics port {metrics_port} cannot be used: {error}; choose another"
        ) from error
