"""Where transfers may connect to: hosts by name, addresses where the connection is made."""

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from adapters.http.addresses import IPAddress, is_local, is_public, literal
from adapters.http.resolved import AddressRefused, Resolve, resolve

CONNECT_SECONDS = 15.0


@dataclass(frozen=True)
class Egress:
    """What the settings permit.

    Args:
        hosts: The only hosts that are connected to, `*.example.org` for all below one; none: all.
        networks: Networks beside the public internet, for partners that are reached inside of one.
        local: This machine may be connected to as well, and plain HTTP: for development.
        folders: Folders below which those of partners are.
        resolve: Finds the addresses of a host.
    """

    hosts: tuple[str, ...] = ()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    local: bool = False
    folders: tuple[Path, ...] = ()
    resolve: Resolve = resolve

    def permitted(self, address: IPAddress) -> bool:
        """Whether an address may be connected to."""
        return (
            is_public(address)
            or (self.local and is_local(address))
            or any(address.version == each.version and address in each for each in self.networks)
        )

    def check_host(self, host: str) -> None:
        """See whether a host is one of those that are permitted.

        Raises:
            AddressRefused: It is not.
        """
        name = host.rstrip(".").lower()
        if self.hosts and not any(_is_named(name, each.lower()) for each in self.hosts):
            raise AddressRefused(f"{host} is none of the hosts in DOCFLOW_TRANSFERS_HOSTS")

    async def addresses(self, host: str, port: int) -> Sequence[IPAddress]:
        """The addresses of a host, every one of which is permitted.

        Raises:
            AddressRefused: One of them is not, or the host is not.
            OSError: It has none.
        """
        self.check_host(host)
        known = literal(host)
        try:
            found = [known] if known is not None else await self.resolve(host, port)
        except UnicodeError as error:
            raise OSError(f"{host[:100]!r} is not a host name") from error
        if not found:
            raise OSError(f"{host} has no address")
        if not all(self.permitted(address) for address in found):
            raise AddressRefused(
                f"{host} has an address that is neither of the public internet nor of the networks "
                "in DOCFLOW_TRANSFERS_NETWORKS"
            )
        return list(dict.fromkeys(found))

    async def connect(self, host: str, port: int) -> socket.socket:
        """A connection to one of the addresses of a host: what was checked is what is used.

        Raises:
            AddressRefused: It may not be connected to; nothing was sent.
            OSError: None of its addresses accepts a connection in time.
        """
        failure: OSError | None = None
        for address in await self.addresses(host, port):
            family = socket.AF_INET if address.version == 4 else socket.AF_INET6
            connection = socket.socket(family, socket.SOCK_STREAM)
            connection.setblocking(False)
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await asyncio.get_running_loop().sock_connect(connection, (str(address), port))
            except OSError as error:  # a timeout is one, too
                connection.close()
                failure = error
            except BaseException:
                connection.close()
                raise
            else:
                return connection
        raise failure or OSError(f"{host} has no address")


def _is_named(host: str, permitted: str) -> bool:
    if permitted.startswith("*."):
        return host.endswith(permitted[1:])
    return host == permitted
