"""The connection of the asynchronous client; that of the other one is generated from it."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar

import httpx

from docflow.client.contexts import Contexts
from docflow.client.errors import GatewayUnreachable, TooLate
from docflow.client.protocol import (
    OVER,
    EventReader,
    Page,
    Request,
    new_file,
    pause_before,
    place,
    refuse,
)

if TYPE_CHECKING:
    from docflow.client.base import Answer
    from docflow.client.models import RunDetail

Item = TypeVar("Item")
Given = ParamSpec("Given")

_OPEN: Final = ("running", "waiting")
_SLOWEST_LOOK: Final = 2.0
_REOPENED_AFTER: Final = 0.5


class AsyncConnection:
    """A connection to a gateway.

    Args:
        address: Of the gateway. Absent: `DOCFLOW_ADDRESS`, or the current context of
            `docflow login`.
        token: Of the person or program. Absent: `DOCFLOW_TOKEN`, or that of the context.
        timeout: Seconds that one answer may take.

    Raises:
        NotConfigured: Address or token is not known.
    """

    def __init__(
        self, address: str | None = None, token: str | None = None, *, timeout: float = 60
    ) -> None:
        context = Contexts().chosen(address, token)
        self.address = context.address.rstrip("/")
        self._http = httpx.AsyncClient(
            base_url=self.address,
            headers={"Authorization": f"Bearer {context.token}"},
            timeout=timeout,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def pages(
        self,
        list: Callable[Given, Awaitable[Page[Item]]],
        *args: Given.args,
        **filters: Given.kwargs,
    ) -> AsyncIterator[Item]:
        """Every item of a list, page by page: `pages(client.list_runs, state="failed")`.

        Raises:
            ClientError: As the list itself.
        """
        while True:
            page = await list(*args, **filters)
            for item in page.items:
                yield item
            if page.next is None:
                return
            filters["cursor"] = page.next

    async def wait(
        self,
        id: str,
        timeout: float | None = None,
        seen: "Callable[[RunDetail], None] | None" = None,
    ) -> "RunDetail":
        """Wait until a run has ended or needs a person.

        Args:
            id: Of the run.
            timeout: Seconds; None: as long as it takes.
            seen: Called with the run at each look.

        Raises:
            TooLate: It is still going on after `timeout`.
            ClientError: There is no such run, or the gateway does not answer.
        """
        from docflow.client.models import RunDetail

        until = None if timeout is None else time.monotonic() + timeout
        pause = 0.1
        while True:
            run = await self.fetch(Request("GET", place("/api/v1/runs/{id}", id=id)), RunDetail)
            if run.state not in _OPEN:
                return run
            if seen is not None:
                seen(run)
            if until is not None and time.monotonic() >= until:
                raise TooLate(f"{id} is {run.state} after {timeout:g} s")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _SLOWEST_LOOK)

    async def fetch(self, request: Request, model: "type[Answer]") -> "Answer":
        """Send a request and read its answer.

        Raises:
            Problem: The gateway refused.
            GatewayUnreachable: It does not answer.
        """
        async with self._sent(request) as response:
            await response.aread()
            return model.of(response)

    async def carry_out(self, request: Request) -> Any:
        """Send a request; its answer as plain JSON, None if it is empty.

        Raises:
            Problem: The gateway refused.
            GatewayUnreachable: It does not answer.
        """
        async with self._sent(request) as response:
            await response.aread()
            refuse(response)
            return response.json() if response.content else None

    async def download(self, request: Request) -> Path:
        """Fetch the file that `request.to` names; it stands there once it is complete.

        Raises:
            Problem: The gateway refused.
            GatewayUnreachable: It does not answer, or stopped in the middle.
            OSError: The file cannot be written.
        """
        target = request.to
        assert target is not None
        async with self._sent(request) as response:
            if not response.is_success:
                await response.aread()
            refuse(response)
            try:
                with new_file(target) as file:
                    async for block in response.aiter_bytes():
                        file.write(block)
            except httpx.HTTPError as error:
                raise _unreachable(self.address, error) from error
        return target

    async def events(self, request: Request, model: "type[Answer]") -> "AsyncIterator[Answer]":
        """What a stream sends; a stream that breaks is continued.

        It ends when the gateway says that nothing more will happen.

        Args:
            request: For the stream.
            model: Of its events.

        Raises:
            Problem: The gateway refused.
            GatewayUnreachable: It does not answer.
        """
        reader = EventReader()
        while True:
            async with self._sent(request, last_event_id=reader.last_id) as response:
                if not response.is_success:
                    await response.aread()
                refuse(response)
                if response.status_code == OVER:
                    return
                try:
                    async for line in response.aiter_lines():
                        for data in reader.read(line):
                            yield model.model_validate_json(data)
                except httpx.TransportError:
                    # The stream is opened again, as one that a gateway ends because it stops.
                    pass
            reader.forget_rest()
            await asyncio.sleep(_REOPENED_AFTER)

    @asynccontextmanager
    async def _sent(
        self, request: Request, last_event_id: str | None = None
    ) -> AsyncGenerator[httpx.Response]:
        response = await self._tried(request, last_event_id)
        try:
            yield response
        finally:
            await response.aclose()

    async def _tried(self, request: Request, last_event_id: str | None) -> httpx.Response:
        number = 0
        while True:
            number += 1
            try:
                with request.opened(last_event_id) as arguments:
                    sent = self._http.build_request(request.method, request.path, **arguments)
                    got = await self._http.send(sent, stream=True)
            except httpx.HTTPError as error:
                pause = pause_before(number, request, error)
                if pause is None:
                    raise _unreachable(self.address, error) from error
            else:
                pause = pause_before(number, request, got)
                if pause is None:
                    return got
                await got.aclose()
            await asyncio.sleep(pause)


def _unreachable(address: str, error: httpx.HTTPError) -> GatewayUnreachable:
    return GatewayUnreachable(f"{address} does not answer: {error or type(error).__name__}")
