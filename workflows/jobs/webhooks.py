"""Webhooks: what receivers are sent, and when the host of one is left alone."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlsplit

from workflows.jobs.records import JobRecord, JobStatus, WebhookInput

BODY_BYTES: Final = 1_000_000
"""A longer message is sent without results, and says so."""
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
        raise InvalidReceiver("must not hold a user or password; sign with webhook_secret")
    host = (parts.hostname or "").rstrip(".")
    if hosts and not any(_fits(host, allowed) for allowed in hosts):
        raise InvalidReceiver("names a host that DOCFLOW_JOBS_WEBHOOK_HOSTS does not list")
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


def body_of(order: WebhookInput, record: JobRecord) -> bytes:
    """The message about the end of a job: the seed's payload, as JSON.

    It holds no `signature`: a signature cannot cover the body that holds it, so it is sent in the
    header `webhook-signature`.
    """
    content: dict[str, Any] = {
        "job_id": order.job_id,
        "job_type": record.job_type,
        "status": _status(order.status),
        "stage_results": record.stage_results,
        "final_results": record.result_data,
        "timestamp": order.ended_at.isoformat().replace("+00:00", "Z"),
        "attempt": order.attempt,
        "error_details": record.error_details,
        "failed_count": record.failed_count,
    }
    body = _dumped(content)
    if len(body) <= BODY_BYTES:
        return body
    results = ("stage_results", "final_results")
    return _dumped({**content, **{name: {} for name in results}, "omitted": results})


def _status(status: JobStatus) -> str:
    return status.lower()


def _dumped(content: dict[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


FAILURES: Final = 5
"""In a row; then the circuit opens."""
FIRST_PAUSE: Final = timedelta(minutes=1)
LONGEST_PAUSE: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Circuit:
    """What is known of a host."""

    failures: int = 0
    """In a row."""
    open_until: datetime | None = None
    """Nothing is sent before; None: the circuit is closed."""

    def blocked(self, now: datetime) -> float | None:
        """Seconds until an attempt may be made; None: now."""
        if self.open_until is None or self.open_until <= now:
            return None
        return (self.open_until - now).total_seconds()

    def probing(self, now: datetime, lease: float) -> "Circuit":
        """While one attempt finds out whether the host works again."""
        if self.open_until is None:
            return self
        return Circuit(self.failures, now + timedelta(seconds=lease))

    def after(self, now: datetime, *, healthy: bool) -> "Circuit":
        """After an attempt; the pause doubles with every one that fails."""
        if healthy:
            return Circuit()
        failures = self.failures + 1
        if failures < FAILURES:
            return Circuit(failures)
        doublings = min(failures - FAILURES, 16)
        return Circuit(failures, now + min(FIRST_PAUSE * 2**doublings, LONGEST_PAUSE))
