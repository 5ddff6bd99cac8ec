"""Operations of the API as methods of both clients, each written once.

The function below a decorator makes the request. As a method of `Client` it returns the answer, and
as one of `AsyncClient` something to await or to iterate over.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, overload

from docflow.client.asynchronous import AsyncConnection
from docflow.client.base import Model
from docflow.client.protocol import Request
from docflow.client.synchronous import Connection

Given = ParamSpec("Given")
Now = TypeVar("Now")
Later = TypeVar("Later")
Answer = TypeVar("Answer", bound=Model)


class Operation(Generic[Given, Now, Later]):
    """An operation of the API.

    Args:
        build: Makes the request.
        send: Sends it over a connection of either kind.
    """

    def __init__(
        self, build: Callable[Given, Request], send: Callable[[Any, Request], Any]
    ) -> None:
        self.__doc__ = build.__doc__
        self._build = build
        self._send = send

    @overload
    def __get__(self, client: None, owner: object = None) -> Callable[Given, Request]: ...
    @overload
    def __get__(self, client: Connection, owner: object = None) -> Callable[Given, Now]: ...
    @overload
    def __get__(self, client: AsyncConnection, owner: object = None) -> Callable[Given, Later]: ...
    def __get__(
        self, client: Connection | AsyncConnection | None, owner: object = None
    ) -> Callable[Given, Any]:
        if client is None:
            return self._build

        @wraps(self._build)
        def called(*args: Given.args, **kwargs: Given.kwargs) -> Any:
            return self._send(client, self._build(*args, **kwargs))

        return called


def answers(
    model: type[Answer],
) -> Callable[[Callable[Given, Request]], Operation[Given, Answer, Awaitable[Answer]]]:
    """An operation whose answer is a model."""
    return lambda build: Operation(build, lambda client, request: client.fetch(request, model))


def plain(build: Callable[Given, Request]) -> Operation[Given, Any, Awaitable[Any]]:
    """An operation whose answer is JSON of no model, or nothing."""
    return Operation(build, lambda client, request: client.carry_out(request))


def file(build: Callable[Given, Request]) -> Operation[Given, Path, Awaitable[Path]]:
    """An operation that writes its answer to the path `to`."""
    return Operation(build, lambda client, request: client.download(request))


def events(
    model: type[Answer],
) -> Callable[
    [Callable[Given, Request]], Operation[Given, Iterator[Answer], AsyncIterator[Answer]]
]:
    """An operation that sends events."""
    return lambda build: Operation(build, lambda client, request: client.events(request, model))
