"""The runtime of a process: its metrics endpoint, and the SDK's own log among ours."""

import logging
from typing import Final

from temporalio.runtime import (
    LogForwardingConfig,
    LoggingConfig,
    PrometheusConfig,
    Runtime,
    TelemetryConfig,
    TelemetryFilter,
)

from workers.listeners import authority, listener
from workers.settings.errors import SettingsError

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
