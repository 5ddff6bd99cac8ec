"""Where transfers may connect to, and a tunnel for clients that resolve names themselves.

A tunnel on this machine for clients that resolve names themselves.

`obstore` connects by a resolver of its own, so that an address which was checked before may be
another one when it is used. It is given this as its proxy (RFC 9110, 9.3.6): the connection is made
here, to an address that is checked where it is made. TLS ends in `obstore`; nothing is read here.
"""

import asyncio
import base64
import secrets
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from adapters.http import AddressRefused, IPAddress, Resolve, is_local, is_public, literal, resolve

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


_HEAD_BYTES = 16 * 1024
_PIECE = 256 * 1024
_HEAD_SECONDS = 10.0


class Tunnel:
    """What a tunnel was asked for.

    Attributes:
        url: To be given to the client as proxy; its password is of this tunnel alone.
        refused: Why the newest connection was not permitted; None: each one was.
    """

    def __init__(self, egress: Egress) -> None:
        self._egress = egress
        self._password = secrets.token_urlsafe(24)
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""
        self.refused: str | None = None

    @asynccontextmanager
    async def serve(self) -> AsyncGenerator["Tunnel"]:
        """Accept connections for the length of the block."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_HEAD_BYTES)
        port = server.sockets[0].getsockname()[1]
        self.url = f"http://docflow:{self._password}@127.0.0.1:{port}"
        try:
            yield self
        finally:
            server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            far_reader, far_writer = await self._connected(head)
        except AddressRefused as refusal:
            self.refused = str(refusal)
            await _answer(writer, "403 Forbidden")
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await _answer(writer, "502 Bad Gateway")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            await _both_ways(reader, writer, far_reader, far_writer)
        finally:
            writer.close()

    async def _connected(self, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        method, target, *_ = head.split(" ", 2)
        expected = base64.b64encode(f"docflow:{self._password}".encode()).decode()
        if method != "CONNECT" or f"Basic {expected}" not in head:
            raise ValueError("no request for this tunnel")
        host, _, port = target.rpartition(":")
        connection = await self._egress.connect(host.strip("[]"), int(port))
        return await asyncio.open_connection(sock=connection, limit=_PIECE)


async def _answer(writer: asyncio.StreamWriter, status: str) -> None:
    writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
    with suppress(OSError):
        await writer.drain()


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    try:
        await asyncio.gather(_one_way(reader, far_writer), _one_way(far_reader, writer))
    except asyncio.CancelledError:
        # Closing waits until the peer has read what was written; it may have stopped reading.
        for each in (writer, far_writer):
            each.transport.abort()
        raise
    finally:
        far_writer.close()


async def _one_way(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()
