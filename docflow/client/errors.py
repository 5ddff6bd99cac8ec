"""Why a request has no usable answer."""

from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """A request has no usable answer."""


class NotConfigured(ClientError):
    """It is not known where the gateway is, or who asks."""


class GatewayUnreachable(ClientError):
    """The gateway does not answer, or something answers that is no gateway."""


class Problem(ClientError):
    """The gateway refused (RFC 9457).

    Attributes:
        status: The HTTP status.
        code: `type`: a word for programs.
        detail: A sentence for people that says what to do.
        more: What else the problem holds, as `errors`.
    """

    def __init__(self, status: int, code: str, detail: str, more: Mapping[str, Any]) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.more = more


class TooLate(ClientError):
    """A run is not where it was waited for; it goes on."""
