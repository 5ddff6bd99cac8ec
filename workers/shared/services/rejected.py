"""What people do with messages that a bridge has rejected."""

from collections.abc import Mapping, Sequence

from adapters.ports.records import RejectedFilter, RejectedMessage, RejectedMessages
from workers.shared.services.errands import ErrandService
from workers.shared.services.errors import NotFound
from workers.shared.services.identity import Identity, require_operator
from workers.shared.services.resubmission import origin_of


class RejectedService:
    """Operations on rejected messages; a refusal is a `ServiceError`.

    Args:
        rejected: Their record.
        errands: Asks workers, which have the keys of the queues.
        environment: Settings that name queues.
    """

    def __init__(
        self, rejected: RejectedMessages, errands: ErrandService, environment: Mapping[str, str]
    ) -> None:
        self._rejected, self._errands, self._environment = rejected, errands, environment

    async def list(
        self, who: Identity, limit: int, wanted: RejectedFilter
    ) -> Sequence[RejectedMessage]:
        """Rejected messages, the newest first."""
        require_operator(who, "rejected messages")
        return await self._rejected.list(limit, wanted)

    async def get(self, who: Identity, number: int) -> RejectedMessage:
        """One message.

        Raises:
            NotFound: There is none with this number.
        """
        require_operator(who, "rejected messages")
        found = await self._rejected.get(number)
        if found is None:
            raise NotFound(f"there is no rejected message {number}")
        return found

    async def retry(
        self,
        who: Identity,
        number: int,
        body: str | None = None,
        bridge: str | None = None,
        *,
        force: bool = False,
    ) -> Sequence[str]:
        """Have a worker send a message to its queue again.

        Args:
            who: Who asks.
            number: Of the message.
            body: Corrected message; None: as it was.
            bridge: What rejected it; None: what the settings say.
            force: Send it although it is not valid, or was sent before.

        Returns:
            What is not known of its queue, for people.

        Raises:
            NotFound: There is none with this number.
            Refused: It would be rejected again, or nothing sends to its queue.
        """
        message = await self.get(who, number)
        origin = origin_of(message.queue, self._environment, bridge)
        given = {"number": number, "body": body, "bridge": bridge, "force": force}
        return await self._errands.ask(who, origin.pipeline, "send-again", given)

    async def dismiss(
        self, who: Identity, number: int, reason: str | None = None
    ) -> RejectedMessage:
        """Note that nobody has to look at a message any more; it stays in the record.

        Raises:
            NotFound: There is none with this number.
        """
        await self.get(who, number)
        await self._rejected.dismiss(number, who.subject, reason)
        return await self.get(who, number)
