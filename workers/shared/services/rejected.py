"""What people do with messages that a bridge has rejected."""

from collections.abc import Sequence

from adapters.ports.records import RejectedFilter, RejectedMessage, RejectedMessages
from workers.shared.services.errors import NotFound
from workers.shared.services.identity import Identity, require_operator


class RejectedService:
    """Operations on rejected messages; a refusal is a `ServiceError`.

    Args:
        rejected: Their record.
    """

    def __init__(self, rejected: RejectedMessages) -> None:
        self._rejected = rejected

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
