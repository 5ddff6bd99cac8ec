"""Clients of docflow's API: `Client`, and `AsyncClient` for asyncio. See docs/client.md."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docflow.client.base import Model
    from docflow.client.contexts import Context, Contexts
    from docflow.client.errors import (
        ClientError,
        GatewayUnreachable,
        NotConfigured,
        Problem,
        TooLate,
    )
    from docflow.client.operations import AsyncClient, Client
    from docflow.client.protocol import File, SentFile

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "Context",
    "Contexts",
    "File",
    "GatewayUnreachable",
    "Model",
    "NotConfigured",
    "Problem",
    "SentFile",
    "TooLate",
]

_MODULES = {
    "AsyncClient": "operations",
    "Client": "operations",
    "Context": "contexts",
    "Contexts": "contexts",
    "File": "protocol",
    "Model": "base",
    "SentFile": "protocol",
}
"""Where a name is, if not in `errors`: models take a moment, and not every program needs them."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'errors')}"), name)
