"""Azure Functions as the bridge: its host receives, keeps the locks and settles.

A function's message can be completed or given back, not dead-lettered. So a rejected message is
completed when its record holds all of it, and else given back until the queue dead-letters it.
The host looks for `app`; `host.json` beside this file lets it hold locks long enough.
"""

import os

import azure.functions as func

from adapters.ports import REJECTED_BODY_BYTES
from workers.bridges.azure_functions_intake import LazyHandler
from workers.bridges.retry import Accept, Retry
from workers.services.verdicts import DeadLetter, Settle


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
        verdict = await retry.run(accept, raw, earlier, message.message_id or None)
        recorded = isinstance(verdict, DeadLetter) and len(raw) <= REJECTED_BODY_BYTES
        if not (recorded or isinstance(verdict, Settle)):
            raise GivenBack(verdict)

    return app


app = build(LazyHandler(os.environ).accept, Retry(hold=240))
