"""The connection of the synchronous client."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
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


class Connection:
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
        self._http = httpx.Client(
            base_url=self.address,
            headers={"Authorization": f"Bearer {context.token}"},
            timeout=timeout,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def pages(
        self,
        list: Callable[Given, Page[Item]],
        *args: Given.args,
        **filters: Given.kwargs,
    ) -> Iterator[Item]:
        """Every item of a list, page by page: `pages(client.list_runs, state="failed")`.

        Raises:
            ClientError: As the list itself.
        """
        while True:
            page = list(*args, **filters)
            yield from page.items
            if page.next is None:
                return
            filters["cursor"] = page.next

    def wait(
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
            run = self.fetch(Request("GET", place("/api/v1/runs/{id}", id=id)), RunDetail)
            if run.state not in _OPEN:
                return run
            if seen is not None:
                seen(run)
            if until is not None and time.monotonic() >= until:
                raise TooLate(f"{id} is {run.state} after {timeout:g} s")
            time.sleep(pause)
            pause = min(pause * 1.5, _SLOWEST_LOOK)

    def fetch(self, request: Request, model: "type[Answer]") -> "Answer":
        """Send a request and read its answer.

        Raises:
            Problem: The gateway refused.
            GatewayUnreachable: It does not answer.
        """
        with self._sent(request) as response:
            response.read()
            return model.of(response)

    def carry_out(self, request: Request) -> Any:
        """Send a request; its answer as plain JSON, None if it is empty.

        Raises:
            Problem: The gateway refused.
            GatewayUnreachable: It does not answer.
        """
        with self._sent(request) as response:
            response.read()
            refuse(response)
            return response.json() if response.content else None

    def download(self, request: Request) -> Path:
        """Fetch the file that `request.to` names; it stands there once it is complete.

        Raises:
            Problem: The gateway refused.
            GatewayUnreachable: It does not answer, or stopped in the middle.
            OSError: The file cannot be written.
        """
        target = request.to
        assert target is not None
        with self._sent(request) as response:
            if not response.is_success:
                response.read()
            refuse(response)
            try:
                with new_file(target) as file:
                    for block in response.iter_bytes():
                        file.write(block)
            except httpx.HTTPError as error:
                raise _unreachable(self.address, error) from error
        return target

    def events(self, request: Request, model: "type[Answer]") -> "Iterator[Answer]":
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
            with self._sent(request, last_event_id=reader.last_id) as response:
                if not response.is_success:
                    response.read()
                refuse(response)
                if response.status_code == OVER:
                    return
                try:
                    for line in response.iter_lines():
                        for data in reader.read(line):
                            yield model.model_validate_json(data)
                except httpx.TransportError:
                    # The stream is opened again, as one that a gateway ends because it stops.
                    pass
            reader.forget_rest()
            time.sleep(_REOPENED_AFTER)

    @contextmanager
    def _sent(
        self, request: Request, last_event_id: str | None = None
    ) -> Generator[httpx.Response]:
        response = self._tried(request, last_event_id)
        try:
            yield response
        finally:
            response.close()

    def _tried(self, request: Request, last_event_id: str | None) -> httpx.Response:
        number = 0
        while True:
            number += 1
            try:
                with request.opened(last_event_id) as arguments:
                    sent = self._http.build_request(request.method, request.path, **arguments)
                    got = self._http.send(sent, stream=True)
            except httpx.HTTPError as error:
                pause = pause_before(number, request, error)
                if pause is None:
                    raise _unreachable(self.address, error) from error
            else:
                pause = pause_before(number, request, got)
                if pause is None:
                    return got
                got.close()
            time.sleep(pause)


def _unreachable(address: str, error: httpx.HTTPError) -> GatewayUnreachable:
    return GatewayUnreachable(f"{address} does not answer: {error or type(error).__name__}")
