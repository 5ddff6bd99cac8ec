"""Answers, counted."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from workers import metrics


class CountedResponses:
    """Counts answers by method and status.

    Args:
        app: What answers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                labels = {"method": scope["method"], "status": str(message["status"])}
                metrics.count(metrics.RESPONSES, labels)
            await send(message)

        await self._app(scope, receive, send_counted)
