"""Secrets that tests plant, and look for afterwards."""

from adapters.ports.errors import Denied


class PlantedSecrets:
    """Secrets in memory, as `Secrets`."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    async def secret(self, reference: str) -> str:
        """The secret."""
        try:
            return self.values[reference]
        except KeyError:
            raise Denied(f"there is no secret {reference}") from None
