"""Azure Functions as the bridge: its host receives, keeps the locks and settles.

A function's message can be completed or given back, not dead-lettered. So a rejected message is
completed when its record holds all of it, and else given back until the queue dead-letters it.
The host looks for `app`, in the folder that `deploy/functions/build.sh` makes.
"""

import logging
import os
from functools import partial
from typing import Final

import azure.functions as func

from adapters.ports.records import REJECTED_BODY_BYTES
from workers.imports.bridge import LazyHandler
from workers.shared.bridges.consumer import Accept, Retry
from workers.shared.logs import about, configure_host_logs
from workers.shared.services.bodies import DeadLetter, Settle, Verdict

logger = logging.getLogger(__name__)


class GivenBack(Exception):
    """Makes the host give the message back, to be delivered again."""


def build(accept: Accept, retry: Retry) -> func.FunctionApp:
    """The function over an entry point."""
    app = func.FunctionApp()

    @app.function_name("imports")
    @app.service_bus_queue_trigger(
        "message", "AZURE_SERVICE_BUS_CONNECTION_STRING", "%AZURE_SERVICE_BUS_QUEUE_NAME%"
    )
    async def imports(message: func.ServiceBusMessage) -> None:  # pyright: ignore[reportUnusedFunction]
        raw, earlier = message.get_body(), max((message.delivery_count or 1) - 1, 0)
        message_id = message.message_id or None
        work = partial(retry.run, accept, raw, earlier, message_id)
        verdict = await about(work, message_id=message_id)
        recorded = isinstance(verdict, DeadLetter) and len(raw) <= REJECTED_BODY_BYTES
        if not (recorded or isinstance(verdict, Settle)):
            # The host logs what is raised, and hides no secret in it.
            logger.warning("message %r is given back: %s", message_id, verdict)
            raise GivenBack("the message is given back; the log of docflow says why")

    return app


_HANDLER: Final = LazyHandler(os.environ)


async def accept_message(raw: bytes, earlier: int, message_id: str | None) -> Verdict:
    """Decide about a message, and log without secrets."""
    configure_host_logs(os.environ)
    return await _HANDLER.accept(raw, earlier, message_id)


app = build(accept_message, Retry(hold=240))
