"""How the demo asks the gateway, as a program of a person would."""

from typing import Any

import httpx


class ApiError(Exception):
    """The gateway refused something; the message says what."""


async def ask(api: httpx.AsyncClient, method: str, path: str, **content: Any) -> Any:
    """Send a request; the JSON of its answer.

    Raises:
        ApiError: It is refused.
    """
    answer = await api.request(method, path, **content)
    if answer.is_error:
        raise ApiError(f"{method} {path} answered {answer.status_code}: {answer.text[:500]}")
    return answer.json()
