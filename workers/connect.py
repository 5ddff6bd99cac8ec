"""The way to Temporal, for every process."""

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from workers.plugin import docflow_plugin


class TemporalUnreachable(Exception):
    """Temporal does not answer; the message says where we looked."""


async def connect(*, lazy: bool = False, runtime: Runtime | None = None) -> Client:
    """Connect as `TEMPORAL_ADDRESS`, `TEMPORAL_PROFILE` and the other settings of the
    Temporal CLI say, with a TOML profile or the environment.

    Raises:
        TemporalUnreachable: Nobody answers there (never with `lazy`).
    """
    config = ClientConfig.load_client_connect_config()
    config.setdefault("target_host", "localhost:7233")
    try:
        return await Client.connect(
            **config, plugins=[docflow_plugin()], lazy=lazy, runtime=runtime
        )
    except (RPCError, RuntimeError) as error:
        raise TemporalUnreachable(
            f"cannot reach Temporal at {config.get('target_host')}: {error}; "
            "is it running, and is TEMPORAL_ADDRESS right?"
        ) from error
