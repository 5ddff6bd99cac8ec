"""The way to Temporal, for every process."""

import os
from collections.abc import Mapping
from typing import Final

from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import Runtime
from temporalio.service import RPCError

from workers.plugin import docflow_plugin
from workers.settings.errors import SettingsError
from workers.settings.secrets import SecretFiles

_KEY: Final = "TEMPORAL_API_KEY"
_FLAGS: Final = ("true", "false", "1", "0")
"""What the SDK understands as yes or no."""


class TemporalUnreachable(Exception):
    """Temporal does not answer; the message says where we looked."""


async def connect(address: str | None = None, *, runtime: Runtime | None = None) -> Client:
    """Connect with the settings of the Temporal CLI.

    Args:
        address: Takes the place of `TEMPORAL_ADDRESS`; everything else, `TEMPORAL_PROFILE`,
            namespace, TLS and API key, comes from the environment or a TOML profile.
        runtime: For metrics.

    Raises:
        SettingsError: A setting of Temporal, or a file that it names, cannot be used.
        TemporalUnreachable: There is no answer at that address.
    """
    config = read_config(os.environ)
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
    except ValueError as error:
        raise SettingsError(
            f"Temporal's settings cannot be used: {error}; TEMPORAL_ADDRESS is host:port, and "
            "TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_* belong together"
        ) from error


def read_config(environment: Mapping[str, str]) -> ClientConnectConfig:
    """The settings of the Temporal CLI, as its SDK reads them; the API key also from a file.

    The SDK ignores a file that is missing, and takes every word for TLS.

    Raises:
        SettingsError: One cannot be used, or a file that it names.
    """
    given = {name: value for name, value in environment.items() if value.strip()}
    file = given.get("TEMPORAL_CONFIG_FILE")
    if file is not None and not os.path.isfile(file):
        raise SettingsError(f"TEMPORAL_CONFIG_FILE: there is no file {file}")
    tls = given.get("TEMPORAL_TLS")
    if tls is not None and tls.lower() not in _FLAGS:
        raise SettingsError(f"TEMPORAL_TLS must be true or false, not {tls!r}")
    try:
        key = SecretFiles(environment).value(_KEY, given.get(_KEY))
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if key is not None:
        given[_KEY] = key
    try:
        return ClientConfig.load_client_connect_config(override_env_vars=given)
    except OSError as error:
        raise SettingsError(
            f"a file of Temporal's settings cannot be read: {error.filename}: {error.strerror}"
        ) from error
    except RuntimeError as error:
        names = ("TEMPORAL_CONFIG_FILE", "TEMPORAL_PROFILE")
        named = ", ".join(f"{name} is {given[name]}" for name in names if name in given)
        # Lines below the first one repeat the file, which may hold a key.
        reason, *_ = str(error).splitlines()
        raise SettingsError(
            f"Temporal's settings cannot be read: {reason}" + (f"; {named}" if named else "")
        ) from None
