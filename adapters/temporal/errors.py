"""Errors of Temporal's client as errors of the ports, in one place."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from temporalio.service import RPCError, RPCStatusCode

from adapters.ports import Denied, Throttled, Unavailable

RPC_TIMEOUT: Final = timedelta(seconds=10)
_REFUSALS: Final = frozenset(
    {
        RPCStatusCode.INVALID_ARGUMENT,
        RPCStatusCode.PERMISSION_DENIED,
        RPCStatusCode.UNAUTHENTICATED,
        RPCStatusCode.UNIMPLEMENTED,
    }
)


@contextmanager
def temporal() -> Generator[None]:
    """Translate what the block raises.

    Raises:
        Throttled: Temporal asks to slow down.
        Denied: It refuses permanently.
        Unavailable: It does not answer.
    """
    try:
        yield
    except RPCError as error:
        message = f"Temporal does not answer: {error.message}"
        if error.status is RPCStatusCode.RESOURCE_EXHAUSTED:
            raise Throttled(message) from error
        if error.status in _REFUSALS:
            raise Denied(f"Temporal refuses: {error.message}") from error
        raise Unavailable(message) from error
