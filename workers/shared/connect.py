"""The way to Temporal, for every process."""

import asyncio
import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from temporalio.client import Client
from temporalio.envconfig import ClientConfig, ClientConnectConfig
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError

from workers.shared.errors import SettingsError, TemporalUnreachable
from workers.shared.payload_codec import EncryptingCodec, open_codec
from workers.shared.plugin import docflow_plugin
from workers.shared.settings.base import SecretFiles
from workers.shared.settings.payloads import PAYLOAD_KEYS

_KEY: Final = "TEMPORAL_API_KEY"
_FLAGS: Final = ("true", "false", "1", "0")
"""What the SDK understands as yes or no."""


CONNECT_SECONDS: Final = 10.0
"""How long Temporal may take to answer at all; the SDK would wait without end."""
_CLOSED: Final = "the connection was closed; perhaps what listens there is not Temporal"
_REASONS: Final[Mapping[str, str]] = {
    "ConnectionRefused": "the connection is refused",
    "tcp connect error": "there is no connection",
    "dns error": "the host name is not known",
    "InvalidContentType": "what listens there speaks no TLS, and the settings ask for it",
    "InvalidCertificate": "its certificate is not accepted",
    "h2 protocol error": "what listens there is not Temporal",
    "ConnectionReset": _CLOSED,
    "BrokenPipe": _CLOSED,
    "operation was canceled": _CLOSED,
    "transport error": _CLOSED,
    "Timeout expired": "no answer in time",
}
"""What stands in a message of the SDK's network library, and what it means."""
_STATUS: Final = re.compile(r'Status \{ code: \w+, message: "([^"]+)"')

logger = logging.getLogger(__name__)


def reason_of(error: RPCError | RuntimeError) -> str:
    """Why Temporal cannot be used, in words; what its network library says is logged at DEBUG."""
    text = str(error)
    logger.debug("Temporal: %s", text)
    for mark, reason in _REASONS.items():
        if mark in text:
            return reason
    if found := _STATUS.search(text):
        return found[1].rstrip(".")
    # The server's own words.
    is_plain = isinstance(error, RPCError) and text and "{" not in text
    return text.rstrip(".") if is_plain else "it does not answer"


@cache
def quiet_runtime() -> Runtime:
    """The runtime of commands, which report a failure themselves.

    The SDK's own log would show each of its retries, in colours and in terms of its library.
    """
    return Runtime(telemetry=TelemetryConfig(logging=None))


async def connect(
    address: str | None = None,
    *,
    runtime: Runtime | None = None,
    sandboxed: bool = False,
    api_key: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Client:
    """Connect with the settings of the Temporal CLI, and encrypt payloads as the settings say.

    Nothing else makes clients that send or read payloads.

    Args:
        address: Takes the place of `TEMPORAL_ADDRESS`; everything else, `TEMPORAL_PROFILE`,
            namespace, TLS and API key, comes from the environment or a TOML profile.
        runtime: With logs and metrics of a process; None: that of a command, which has neither.
        sandboxed: Workers with this client run workflows in the sandbox.
        api_key: Takes the place of `TEMPORAL_API_KEY`.
        environment: Where settings are read; None: that of the process.

    Raises:
        SettingsError: A setting of Temporal, a file that it names, or a key of payloads cannot be
            used.
        TemporalUnreachable: There is no answer at that address, or from what keeps the keys.
    """
    environment = os.environ if environment is None else environment
    config = read_config(environment if api_key is None else {**environment, _KEY: api_key})
    if address is not None:
        config["target_host"] = address
    config.setdefault("target_host", "localhost:7233")
    codec = await open_codec(environment)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            client = await Client.connect(
                **config,
                plugins=[docflow_plugin(sandboxed=sandboxed, codec=codec)],
                runtime=runtime or quiet_runtime(),
            )
    except TimeoutError as error:
        raise _unreachable(config, f"no answer within {CONNECT_SECONDS:g} s") from error
    except (RPCError, RuntimeError) as error:
        raise _unreachable(config, reason_of(error)) from error
    except ValueError as error:
        raise SettingsError(
            f"Temporal's settings cannot be used: {error}; TEMPORAL_ADDRESS is host:port, and "
            "TEMPORAL_TLS_CLIENT_CERT_* and TEMPORAL_TLS_CLIENT_KEY_* belong together"
        ) from error
    _log_encryption(codec)
    return client


def _log_encryption(codec: EncryptingCodec | None) -> None:
    if codec is None:
        logger.info("payloads stand in clear in Temporal: %s is not set", PAYLOAD_KEYS)
    elif codec.key_id is None:
        logger.info("payloads stand in clear in Temporal: %s begins with clear", PAYLOAD_KEYS)
    else:
        logger.info("payloads are encrypted in Temporal with the key %s", codec.key_id)


def _unreachable(config: ClientConnectConfig, reason: str) -> TemporalUnreachable:
    return TemporalUnreachable(
        f"cannot reach Temporal at {config.get('target_host')}: {reason}; "
        "is it running, and is TEMPORAL_ADDRESS right?"
    )


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
        config = ClientConfig.load_client_connect_config(override_env_vars=given)
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
    _check_address(config.get("target_host", ""))
    return config


def _check_address(address: str) -> None:
    """Refuse what Temporal's SDK can make no URL of.

    Raises:
        SettingsError: The port is not a number of a port, or brackets are not closed.
    """
    try:
        _ = urlsplit(address if "://" in address else f"//{address}").port
    except ValueError as error:
        raise SettingsError(f"TEMPORAL_ADDRESS must be host:port, not {address!r}") from error
