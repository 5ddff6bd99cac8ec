"""Metrics of processes: docflow's own, those of the SDK, one page of several processes.

docflow's own metrics, on the endpoint of Temporal's SDK; docs/runbook.md describes them.

A process measures from `measuring` on. Where nothing measures, as in commands and functions,
counting does nothing.

Metrics of several processes as one page, in the text format of Prometheus.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

import logging
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
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


@dataclass
class _Family:
    """One metric of all processes: a page may show it once."""

    descriptions: dict[str, str] = field(default_factory=dict[str, str])
    """HELP and TYPE, each the line of the process that is first."""
    samples: list[str] = field(default_factory=list[str])


def merged(pages: Mapping[str, str]) -> str:
    """One page with every sample of several, each with a label `process`.

    Args:
        pages: By the value of the label.
    """
    families: dict[str, _Family] = {}
    for process, page in pages.items():
        _read(page, f'process="{process}"', families)
    return "".join(f"{line}\n" for family in families.values() for line in _lines(family))


def _read(page: str, label: str, families: dict[str, _Family]) -> None:
    family = families.setdefault("", _Family())
    for line in page.splitlines():
        words = line.split(maxsplit=3)
        if line.startswith("#"):
            if len(words) > 2 and words[1] in ("HELP", "TYPE"):
                family = families.setdefault(words[2], _Family())
                family.descriptions.setdefault(words[1], line)
        elif words:
            family.samples.append(_labelled(line, label))


def _labelled(sample: str, label: str) -> str:
    name, brace, labels = sample.partition("{")
    if not brace:
        name, _, value = sample.partition(" ")
        return f"{name}{{{label}}} {value}"
    comma = "" if labels.startswith("}") else ","
    return f"{name}{{{label}{comma}{labels}"


def _lines(family: _Family) -> Iterator[str]:
    yield from family.descriptions.values()
    yield from family.samples


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
