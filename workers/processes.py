"""A worker of several processes: one readiness, one page of metrics."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final

import httpx
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from workers.capacity import MB, PROCESS_BYTES, Share
from workers.exposition import merged
from workers.health import Health
from workers.health_server import serve_health, serving
from workers.process import work_of
from workers.settings.common import HttpSettings
from workers.signals import stop_on_signals
from workers.supervisor import Supervisor, Target

logger = logging.getLogger(__name__)

UP: Final = "docflow_process_up"
STARTS: Final = "docflow_process_starts_total"
_SCRAPE_SECONDS: Final = 5.0
_FORMAT: Final = "text/plain; version=0.0.4"


async def run_processes(
    target: Target,
    share: Share,
    names: Sequence[str] | None,
    environment: Mapping[str, str],
    *,
    with_bridge: bool = False,
    health_port: int | None = None,
    metrics_port: int | None = None,
) -> None:
    """Keep the processes of a worker running until SIGTERM, SIGINT or SIGHUP.

    Args:
        target: What each of them does.
        share: What each of them has.
        names: Pipelines of the catalogue; None: every one whose settings are present.
        environment: Where settings are read, once before any process is started.
        with_bridge: Every process receives messages too.
        health_port: Serve the health of all, on `DOCFLOW_HTTP_HOST`.
        metrics_port: Serve the metrics of all, on `DOCFLOW_HTTP_HOST`.

    Raises:
        SettingsError: A setting is missing or invalid, or a port cannot be listened on.
    """
    work = work_of(names, environment, with_bridge=with_bridge)
    host = work.settings[HttpSettings.read].host
    health = Health()
    supervisor = Supervisor(target, share.processes, health)
    async with AsyncExitStack() as stack:
        stop = stack.enter_context(stop_on_signals())
        if health_port is not None:
            await stack.enter_async_context(serve_health(health, health_port, host))
        if metrics_port is not None:
            client = await stack.enter_async_context(_client())
            page = Route("/metrics", _metrics(supervisor, client))
            await stack.enter_async_context(serving([page], metrics_port, "metrics port", host))
        _log_start(share)
        await supervisor.run(stop)
        logger.info("all processes have ended")


def _log_start(share: Share) -> None:
    megabytes = max(0, share.memory_bytes) // MB
    connections = "" if share.connections is None else f" and {share.connections} connections"
    logger.info("starting %d processes, %d MB%s each", share.processes, megabytes, connections)
    if share.memory_bytes < PROCESS_BYTES:
        logger.warning(
            "memory may run out: there are %d MB for each of %d processes, and one takes %d MB "
            "before it does anything; start fewer with --processes",
            *(megabytes, share.processes, PROCESS_BYTES // MB),
        )


def _client() -> httpx.AsyncClient:
    return httpx.AsyncClient(timeout=_SCRAPE_SECONDS, trust_env=False)


def _metrics(
    supervisor: Supervisor, client: httpx.AsyncClient
) -> Callable[[Request], Awaitable[PlainTextResponse]]:
    """Answers with the metrics of all processes that answer."""

    async def answer(request: Request) -> PlainTextResponse:
        known = supervisor.metrics
        pages = await asyncio.gather(*(_page(client, address) for address in known.values()))
        found = {number: page for number, page in zip(known, pages, strict=True) if page}
        page = merged(found) + "".join(_own(supervisor.starts, found))
        return PlainTextResponse(page, media_type=_FORMAT)

    return answer


async def _page(client: httpx.AsyncClient, address: str) -> str | None:
    try:
        answer = await client.get(f"http://{address}/metrics")
    except httpx.TransportError as error:
        logger.warning("no metrics at %s: %s", address, error or type(error).__name__)
        return None
    return answer.text


def _own(starts: Mapping[str, int], found: Mapping[str, str]) -> Iterator[str]:
    """Metrics of the parent itself."""
    yield f"# HELP {UP} Whether the metrics of a process are here\n# TYPE {UP} gauge\n"
    for number in starts:
        yield f'{UP}{{process="{number}"}} {int(number in found)}\n'
    yield f"# HELP {STARTS} Starts of a process\n# TYPE {STARTS} counter\n"
    for number, count in starts.items():
        yield f'{STARTS}{{process="{number}"}} {count}\n'
