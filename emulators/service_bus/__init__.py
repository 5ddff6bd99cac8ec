"""A Service Bus emulator: AMQP 1.0 on loopback for the unmodified azure-servicebus and
azure-eventhub clients.

It is a test double for development, tests and benchmarks only:

- Messages live in memory, and in a file where one is given: they survive SIGKILL then. Locks do
  not survive it: what was locked is delivered again.
- Every log-in and every token is accepted, which is why it refuses to listen outside loopback.
- Queues with their dead-letter queues, named at start. Topics, message sessions, transactions,
  rules and the HTTP administration API are refused with an explicit error.
- Duplicate detection, forwarding and partitions do not exist; a session id is stored and
  otherwise ignored. Expired messages are discarded, as a queue does by default.
- Event hubs: partitions, consumer groups, positions and epochs, in memory; nothing expires.
- A message or batch holds at most 256 KB; queues are bounded by memory alone.

The layers, from the inside: `codec` (types), `message` (sections), `queued_message`, `journal` (the
file), `broker` (rules of a queue), `performatives` (frames), `node` (queues in an event loop),
`hubs`, `links`, `hub_links`, `session`, `connection`, `management`, `server`.
"""

from emulators.service_bus.hubs import HubSettings
from emulators.service_bus.server import DEFAULT_PORT, ServiceBusEmulator, serve
from emulators.service_bus.settings import QueueCounts, QueueSettings, parse_queue

__all__ = [
    "DEFAULT_PORT",
    "HubSettings",
    "QueueCounts",
    "QueueSettings",
    "ServiceBusEmulator",
    "parse_queue",
    "serve",
]
