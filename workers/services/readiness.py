"""Whether what every request needs answers."""

import asyncio
import logging
from datetime import timedelta
from typing import Final

from sqlalchemy import select
from temporalio.client import Client
from temporalio.service import RPCError

from adapters.database import Database
from adapters.ports import PortError
from workers.connect import reason_of

_SECONDS: Final = 3
_RPC_TIMEOUT: Final = timedelta(seconds=5)

logger = logging.getLogger(__name__)


class Readiness:
    """Whether Temporal and the database answer.

    Args:
        client: Of Temporal.
        database: Of all pipelines.
    """

    def __init__(self, client: Client, database: Database) -> None:
        self._client = client
        self._database = database

    async def check(self) -> bool:
        """Whether both answer in time; what does not is logged."""
        try:
            async with asyncio.timeout(_SECONDS):
                async with self._database.reading() as connection:
                    await connection.execute(select(1))
                return await self._client.service_client.check_health(timeout=_RPC_TIMEOUT)
        except (PortError, TimeoutError) as error:
            logger.warning("not ready: %s", error or "the database does not answer in time")
        # A client that was never connected raises a RuntimeError.
        except (RPCError, RuntimeError) as error:
            logger.warning("Temporal does not answer: %s", reason_of(error))
        return False
