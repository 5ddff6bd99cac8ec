"""Addresses that webhooks may be posted to, and how people see them."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

URL_CHARACTERS: Final = 2_048


class InvalidReceiver(ValueError):
    """A URL that nothing is posted to; the message says why, without repeating the URL."""


def check_receiver(url: str, hosts: Sequence[str], *, local: bool) -> str:
    """The URL, when messages may be posted to it; its addresses are checked at each attempt.

    Args:
        url: As a request gives it.
        hosts: That are allowed, `*.example.org` for all below one; none: every public one.
        local: Whether plain HTTP is accepted, for development.

    Raises:
        InvalidReceiver: They may not.
    """
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url or len(url) > URL_CHARACTERS:
        raise InvalidReceiver("is not a URL that can be posted to; write https://host/path")
    parts = urlsplit(url)
    if parts.scheme != "https" and not (local and parts.scheme == "http"):
        raise InvalidReceiver("must begin with https://")
    if parts.username or parts.password:
        raise InvalidReceiver(
            "must not hold a user or password; give a secret, which signs what is sent"
        )
    host = (parts.hostname or "").rstrip(".")
    if hosts and not any(_fits(host, allowed) for allowed in hosts):
        raise InvalidReceiver("names a host that DOCFLOW_WEBHOOK_HOSTS does not list")
    return url


def _fits(host: str, allowed: str) -> bool:
    allowed = allowed.lower().rstrip(".")
    if allowed.startswith("*."):
        return host.endswith(allowed[1:])
    return host == allowed


def host_of(url: str) -> str:
    """Host and port of a URL, as its circuit is known by."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    return host if parts.port is None else f"{host}:{parts.port}"


def shown(url: str) -> str:
    """A URL as people see it: what stands behind a question mark may be a token."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}" + ("?..." if parts.query else "")
