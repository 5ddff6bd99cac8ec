"""Links of a session as its client asks for them: which queue, hub or service each one leads to."""

from collections.abc import Callable
from typing import Final, TypeAlias

from emulators.service_bus.codec import Described
from emulators.service_bus.hub_links import ReaderLink
from emulators.service_bus.hubs import HUB_MANAGEMENT
from emulators.service_bus.links import ConsumerLink, LinkError, ReceivingLink, ReplyLink, Wire
from emulators.service_bus.management import answer, answer_token
from emulators.service_bus.message import BATCH_FORMAT, parse, parse_batch
from emulators.service_bus.node import MANAGEMENT_SUFFIX, Directory, Node, path_of
from emulators.service_bus.performatives import SOURCE, TARGET, Attach, fields_of

CBS_ADDRESS: Final = "$cbs"
_SESSION_FILTER: Final = "com.microsoft:session-filter"
_COORDINATOR: Final = 0x30

AnyLink: TypeAlias = ConsumerLink | ReaderLink | ReplyLink | ReceivingLink


class LinkFactory:
    """Makes the links of a session.

    Args:
        wire: The session, as links see it.
        directory: Queues and hubs by their names.
        drop: Detaches the link of a handle, with condition and description.
    """

    def __init__(
        self, wire: Wire, directory: Directory, drop: Callable[[int, str, str], None]
    ) -> None:
        self._wire = wire
        self._directory = directory
        self._drop = drop
        self._replies: dict[str, ReplyLink] = {}

    def forget(self, link: AnyLink) -> None:
        """Send no more replies on a link that has ended."""
        self._replies = {key: reply for key, reply in self._replies.items() if reply is not link}

    def open(self, attach: Attach) -> AnyLink:
        """Make the link that a client asks for.

        Raises:
            LinkError: There is no such queue, or the emulator cannot do what is asked.
        """
        end = attach.source if attach.role else attach.target
        address = _address(end, SOURCE if attach.role else TARGET)
        node = self._directory.find(address)
        if node is None and (link := self._open_hub_link(attach, address)) is not None:
            return link
        if node is None and address not in (CBS_ADDRESS, HUB_MANAGEMENT):
            raise LinkError(
                "amqp:not-found", f"The messaging entity '{address}' could not be found."
            )
        if node is None or address.casefold().endswith(MANAGEMENT_SUFFIX):
            return self._open_request_link(attach, address, node)
        if attach.role:
            return ConsumerLink(self._wire, attach, node)
        if node.queue.dead_letters is None:
            raise LinkError("amqp:not-allowed", "Messages cannot be sent to a dead-letter queue.")
        return ReceivingLink(self._wire, attach, lambda kind, data: _store(node, kind, data), node)

    def _open_hub_link(self, attach: Attach, address: str) -> ReaderLink | ReceivingLink | None:
        """A link of an event hub; None: the address names none."""
        path = path_of(address)
        if attach.role:
            read = self._directory.hubs.reader(path)
            if read is None:
                return None

            def drop(condition: str, description: str) -> None:
                self._drop(attach.handle, condition, description)

            return ReaderLink(self._wire, attach, *read, drop)
        written = self._directory.hubs.writer(path)
        if written is None:
            return None
        hub, number = written
        return ReceivingLink(self._wire, attach, lambda kind, data: hub.store(number, kind, data))

    def _open_request_link(
        self, attach: Attach, address: str, node: Node | None
    ) -> ReplyLink | ReceivingLink:
        if attach.role:
            link = ReplyLink(self._wire, attach)
            self._replies[address] = link
            return link

        def accept(_message_format: int, data: bytes) -> None:
            replies = self._replies.get(address)
            if replies is None:
                raise LinkError("amqp:precondition-failed", f"{address}: attach a receiver first.")
            if address == HUB_MANAGEMENT:
                replies.reply(self._directory.hubs.answer(data))
            elif node is None:
                replies.reply(answer_token(self._directory, data))
            else:
                replies.reply(answer(node.queue, data))
                node.touch()

        return ReceivingLink(self._wire, attach, accept)


def _address(end: Described | None, code: int) -> str:
    """Address of a source or target.

    Raises:
        LinkError: It has none, or asks for sessions or transactions.
    """
    if end is not None and end.descriptor == _COORDINATOR:
        raise LinkError("amqp:not-implemented", "This emulator does not support transactions.")
    if end is None:
        raise LinkError("amqp:invalid-field", "The link has no source or target.")
    values = fields_of(end, code)
    address, filters = values[0], values[7] if code == SOURCE else None
    if isinstance(filters, dict) and _SESSION_FILTER in filters:
        raise LinkError("amqp:not-allowed", "This emulator does not support message sessions.")
    if not isinstance(address, str):
        raise LinkError("amqp:invalid-field", "The address of a link must be a string.")
    if "/subscriptions/" in address.casefold():
        raise LinkError("amqp:not-implemented", "This emulator does not support topics.")
    return address


def _store(node: Node, message_format: int, data: bytes) -> None:
    contents = parse_batch(data) if message_format == BATCH_FORMAT else [parse(data)]
    node.queue.send_all(contents)
    node.touch()
