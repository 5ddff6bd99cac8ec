"""The way to Temporal, for every process."""

from temporalio.client import Client
from temporalio.envconfig import ClientConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from workers.plugin import docflow_plugin


class TemporalUnreachable(Exception):
    """Temporal does not answer; the message says where we looked."""


async def connect(address: str | None = None, *, runtime: Runtime | None = None) -> Client:
    """Connect with the settings of the Temporal CLI.

    Args:
        address: Takes the place of `TEMPORAL_ADDRESS`; everything else, `TEMPORAL_PROFILE`,
            namespace, TLS and API key, comes from the environment or a TOML profile.
        runtime: For metrics.

    Raises:
        TemporalUnreachable: There is no answer at that address.
    """
    config = ClientConfig.load_client_connect_config()
    if address is not None:
        config["target_host"] = address
    config.setdefault("target_host", "localhost:7233")
    try:
        return await Client.connect(**config, plugins=[docflow_plugin()], runtime=runtime)
    except (RPCError, RuntimeError) as error:
        raise TemporalUnreachable(
            f"cannot reach Temporal at {config.get('target_host')}: {error}; "
            "is it running, and is TEMPORAL_ADDRESS right?"
        ) from error
