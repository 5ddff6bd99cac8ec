"""The emulator as a server."""

import asyncio
import ipaddress
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from emulators.service_bus.connection import Connection
from emulators.service_bus.hubs import HubSettings
from emulators.service_bus.journal import FileJournal, Journal
from emulators.service_bus.node import Directory, Node
from emulators.service_bus.settings import QueueCounts, QueueSettings

DEFAULT_PORT: Final = 5672


class ServiceBusEmulator:
    """Queues of Azure Service Bus on a loopback port.

    Args:
        queues: The queues; there are no others, and none can be added.
        host: A loopback address.
        port: A port, or 0 for a free one.
        messages: A file that keeps the messages, made when missing; None: they live in memory.
        hubs: Event hubs; their events live in memory.

    Raises:
        ValueError: The host is not loopback, or a queue is given twice or not at all.
    """

    def __init__(
        self,
        queues: Sequence[QueueSettings],
        host: str = "127.0.0.1",
        port: int = 0,
        messages: Path | None = None,
        hubs: Sequence[HubSettings] = (),
    ) -> None:
        if not _is_loopback(host):
            raise ValueError(
                f"the Service Bus emulator accepts every token, so it answers on loopback only; "
                f"use 127.0.0.1 instead of {host}"
            )
        if not queues and not hubs:
            raise ValueError("the Service Bus emulator needs at least one queue")
        self._queues = tuple(queues)
        self._hubs = tuple(hubs)
        self._host = host
        self._port = port
        self._messages = messages
        self._journal: Journal | None = None
        self._directory: Directory | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port

    @property
    def connection_string(self) -> str:
        """What clients take; any key name and key would do."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return (
            f"Endpoint=sb://{host}:{self._port};SharedAccessKeyName=emulator;"
            "SharedAccessKey=emulator;UseDevelopmentEmulator=true;"
        )

    async def start(self) -> None:
        """Listen, with the messages of its file.

        Raises:
            RuntimeError: It has been started already.
            OSError: The port is taken.
            sqlite3.DatabaseError: The file of messages cannot be used.
        """
        if self._server is not None:
            raise RuntimeError("the emulator has been started already")
        self._journal = Journal() if self._messages is None else FileJournal(self._messages)
        try:
            self._directory = Directory(self._queues, time.time, self._journal, self._hubs)
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._connect, self._host, self._port)
        except BaseException:
            self._journal.close()
            raise
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Close all connections and the file of messages; does nothing when not started."""
        if self._server is None or self._journal is None:
            return
        self._server.close()
        for node in self._running():
            node.stop()
        for connection in list(self._connections):
            connection.shut_down("The emulator stops.")
        await self._server.wait_closed()
        self._server = None
        self._journal.close()

    def counts(self, queue: str) -> QueueCounts:
        """How many messages a queue holds now, by state.

        Raises:
            KeyError: There is no such queue.
        """
        return self._node(queue).queue.counts()

    async def drop_links(self, queue: str) -> None:
        """Detach all links of a queue and its dead-letter queue, as idle or updated services do.

        Links of its management node stay, so that settlement can continue through them.

        Raises:
            KeyError: There is no such queue.
        """
        node = self._node(queue)
        nodes = {node}
        nodes |= {other for other in self._running() if other.queue is node.queue.dead_letters}
        for connection in list(self._connections):
            connection.drop_links(
                nodes, "amqp:link:detach-forced", "The link is force detached, as when idle."
            )
        await asyncio.sleep(0)

    def events(self, hub: str) -> Sequence[int]:
        """How many events each partition of a hub holds.

        Raises:
            KeyError: There is no such hub.
        """
        found = self._running().hubs.hub(hub)
        if found is None:
            raise KeyError(f"there is no event hub {hub}")
        return [len(each.events) for each in found.partitions]

    async def drop_connections(self, *, abruptly: bool = False) -> None:
        """Close all connections, as an updated service does.

        Args:
            abruptly: Cut them without a word instead, as a failing network does.
        """
        for connection in list(self._connections):
            if abruptly:
                connection.abort()
            else:
                connection.shut_down("The service is being updated.")
        await asyncio.sleep(0)

    def _connect(self) -> Connection:
        connection = Connection(self._running(), self._connections.discard)
        self._connections.add(connection)
        return connection

    def _running(self) -> Directory:
        if self._directory is None:
            raise RuntimeError("the emulator has not been started")
        return self._directory

    def _node(self, queue: str) -> Node:
        node = self._running().find(queue)
        if node is None:
            raise KeyError(f"there is no queue {queue}")
        return node


async def serve(
    queues: Sequence[QueueSettings],
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    announce: Callable[[str], None] = print,
    messages: Path | None = None,
) -> None:
    """Run an emulator until SIGTERM, SIGINT or cancellation.

    Args:
        queues: The queues.
        host: A loopback address.
        port: A port, or 0 for a free one.
        announce: Gets the connection string once clients can connect.
        messages: As for `ServiceBusEmulator`.

    Raises:
        ValueError: As for `ServiceBusEmulator`.
        OSError: The port is taken.
        sqlite3.DatabaseError: The file of messages cannot be used.
    """
    async with ServiceBusEmulator(queues, host, port, messages) as emulator:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        announce(emulator.connection_string)
        await stop.wait()


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
