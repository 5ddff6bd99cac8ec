"""Sockets that processes listen on."""

import errno
import socket
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from workers.settings.errors import SettingsError

HOST_SETTING: Final = "DOCFLOW_HTTP_HOST"
LOOPBACK: Final = "127.0.0.1"
_BACKLOG: Final = 1024
_PORT_ERRORS: Final = frozenset({errno.EADDRINUSE, errno.EACCES})
"""Those that another port avoids; all others are the address's."""


@contextmanager
def listener(
    host: str, port: int, name: str, *, host_setting: str = HOST_SETTING
) -> Generator[socket.socket]:
    """A TCP socket that listens until the block ends.

    Args:
        host: A name, an IPv4 or an IPv6 address; of a name with both, its IPv4 address is taken.
        port: A port; a free one when 0.
        name: What the port is called in messages.
        host_setting: Where the host comes from, for messages.

    Raises:
        SettingsError: The host is not an address of this machine, or the port is taken.
    """
    family, address = _resolve(host, port, host_setting)
    try:
        # Named, the protocol lets the event loop turn Nagle's algorithm off: 40 ms for each answer.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _unusable_host(host, host_setting, error) from error
    with listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(address)
            listening.listen(_BACKLOG)
        except OSError as error:
            if error.errno not in _PORT_ERRORS:
                raise _unusable_host(host, host_setting, error) from error
            raise SettingsError(
                f"{name} {port} cannot be used: {error.strerror}; choose another"
            ) from error
        yield listening


def authority(listening: socket.socket) -> str:
    """Address and port of a socket as URLs have them, for example `[::1]:8000`."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if listening.family is socket.AF_INET6 else f"{host}:{port}"


def _resolve(
    host: str, port: int, host_setting: str
) -> tuple[socket.AddressFamily, tuple[str | int | bytes, ...]]:
    """Family and address to bind to.

    Raises:
        SettingsError: The host has no address.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _unusable_host(host, host_setting, error) from error
    family, _, _, _, address = min(found, key=lambda each: each[0] is not socket.AF_INET)
    return family, address


def _unusable_host(host: str, host_setting: str, error: Exception) -> SettingsError:
    reason = error.strerror if isinstance(error, OSError) else "not a host name"
    return SettingsError(f"{host_setting}: cannot listen at {host!r}: {reason}")
