"""A worker of several processes: its parent starts each again, and speaks for all."""

import asyncio
import logging
import multiprocessing
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from typing import Final

import httpx
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from workers.shared.bridges.consumer import Retry, Stop
from workers.shared.health import Health, stop_on_signals
from workers.shared.health_server import serve_health, serving
from workers.shared.machine import MB, PROCESS_BYTES, Share
from workers.shared.metrics import merged
from workers.shared.process import Report, channel, end_with, work_of
from workers.shared.settings.common import HttpSettings

Target = Callable[[int, socket.socket], None]
"""What a process does, given its number from 1 and its channel for reports.
The process imports it by its name, so it stands at the top of a module."""

PAUSES: Final = Retry(first_pause=0.5, longest_pause=30.0)
"""Before a process is started again."""
_STEADY_SECONDS: Final = 60.0
"""Once it has been up for so long, its earlier ends no longer count."""
_SILENT_SECONDS: Final = 10.0
"""A process that reports nothing for so long is stuck."""
_MESSAGE_BYTES: Final = 1 << 20
_SPAWN: Final = multiprocessing.get_context("spawn")


@dataclass
class _Process:
    """One of the processes, over all its starts."""

    number: int
    report: Report | None = None
    """The latest; None: it has not reported since it was started."""
    reported: float = 0.0
    """When, by the clock of the loop; that of its start while it has not reported."""
    ended: str | None = None
    """Why it ended the last time; None: it has reported since."""
    starts: int = 0
    known_silent: bool = False
    """Whether its silence was logged."""

    def is_silent(self, before: float) -> bool:
        """Whether it was up, has not ended, and has reported nothing since that time."""
        return self.report is not None and self.ended is None and self.reported < before

    def problems(self, before: float) -> Sequence[str]:
        """What is wrong with it, a sentence each."""
        if self.ended is not None:
            return (self.ended,)
        if self.is_silent(before):
            return ("it reports nothing",)
        if self.report is None:
            is_late = self.starts > 0 and self.reported < before
            return ("it has not reported since it was started",) if is_late else ()
        return self.report.problems


class Supervisor:
    """Keeps the processes of a worker running.

    One that ends is started again, after a pause that grows with each end. The health of all stands
    in that of the parent: it is ready when all of them are.

    Args:
        target: What each of them does.
        processes: How many there are.
        health: Of the parent.
        pauses: Before a process is started again.
        silent: Seconds without a report after which a process is stuck.
    """

    def __init__(
        self,
        target: Target,
        processes: int,
        health: Health,
        *,
        pauses: Retry = PAUSES,
        silent: float = _SILENT_SECONDS,
    ) -> None:
        self._target = target
        self._processes = [_Process(number) for number in range(1, processes + 1)]
        self._health = health
        self._pauses = pauses
        self._silent = silent

    @property
    def metrics(self) -> Mapping[str, str]:
        """Addresses of the metrics of processes that run, by number."""
        return {
            str(each.number): each.report.metrics
            for each in self._processes
            if each.ended is None and each.report is not None and each.report.metrics is not None
        }

    @property
    def starts(self) -> Mapping[str, int]:
        """How often each process was started, by number."""
        return {str(each.number): each.starts for each in self._processes}

    async def run(self, stop: asyncio.Event) -> None:
        """Keep them running until the stop; then end them as SIGTERM does, and wait for them."""
        watching = asyncio.create_task(self._watch())
        try:
            async with asyncio.TaskGroup() as keeping:
                for each in self._processes:
                    keeping.create_task(self._keep(each, stop))
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        """Notice silence, which nothing reports."""
        while True:
            await asyncio.sleep(1)
            self._note()

    async def _keep(self, process: _Process, stop: asyncio.Event) -> None:
        loop, pauses = asyncio.get_running_loop(), self._pauses.pauses()
        while not stop.is_set():
            began = loop.time()
            try:
                reason = await self._run_once(process, stop)
            except _NotStarted as error:
                reason = str(error)
            if stop.is_set():
                return
            if loop.time() - began > _STEADY_SECONDS:
                pauses = self._pauses.pauses()
            await self._pause(process, reason, pauses, Stop(stop))

    async def _pause(
        self, process: _Process, reason: str, pauses: Iterator[float], stop: Stop
    ) -> None:
        pause = next(pauses)
        process.ended = f"{reason}; it is started again within {pause:.1f} s"
        logger.error("process %d of %d %s", process.number, len(self._processes), process.ended)
        self._note()
        await stop.pause(pause)

    async def _run_once(self, process: _Process, stop: asyncio.Event) -> str:
        """Run it until it ends; why it has ended.

        Raises:
            _NotStarted: The machine refuses another process.
        """
        loop = asyncio.get_running_loop()
        child, ours = self._start(process.number)
        with ours:
            process.report, process.reported = None, loop.time()
            process.starts += 1
            ended = asyncio.Event()
            loop.add_reader(child.sentinel, ended.set)
            loop.add_reader(ours, self._read, process, ours)
            try:
                await _first(ended, stop)
                child.terminate()
                await ended.wait()
            finally:
                loop.remove_reader(child.sentinel)
                loop.remove_reader(ours)
                if not ended.is_set():
                    child.kill()
                child.join()
            while self._read(process, ours):
                pass
        return _reason(child, process.report)

    def _start(self, number: int) -> tuple[SpawnProcess, socket.socket]:
        """A new process, and the channel of its reports.

        Raises:
            _NotStarted: The machine refuses another process.
        """
        try:
            ours, theirs = channel()
            # While this end is open here too, the child would never see its parent's end.
            with theirs:
                child = _SPAWN.Process(target=_begin, args=(self._target, number, theirs))
                try:
                    with _uninterrupted():
                        child.start()
                except OSError:
                    ours.close()
                    raise
        except OSError as error:
            # Memory, processes or files of the machine: those that run must not end for it.
            raise _NotStarted(f"cannot be started: {error.strerror or error}") from error
        return child, ours

    def _read(self, process: _Process, ours: socket.socket) -> bool:
        """Take the next report; False: there is none."""
        loop = asyncio.get_running_loop()
        try:
            message = ours.recv(_MESSAGE_BYTES, socket.MSG_DONTWAIT)
        except (BlockingIOError, ConnectionResetError):
            return False
        if not message:
            # It ends, which its sentinel says too.
            loop.remove_reader(ours)
            return False
        process.report, process.reported = Report.unpacked(message), loop.time()
        process.ended = None
        self._note()
        return True

    def _note(self) -> None:
        """Bring the health of the parent up to date."""
        before = asyncio.get_running_loop().time() - self._silent
        found: dict[str, list[int]] = {}
        for each in self._processes:
            for problem in each.problems(before):
                found.setdefault(problem, []).append(each.number)
        self._health.missing = tuple(
            problem if len(numbers) == len(self._processes) else f"{_named(numbers)}: {problem}"
            for problem, numbers in found.items()
        )
        for each in self._processes:
            self._log_silence(each, is_silent=each.is_silent(before))
        silent = [each.number for each in self._processes if each.is_silent(before)]
        self._health.stuck = (f"{_named(silent)} reports nothing",) if silent else ()
        self._health.ready = all(
            each.ended is None and each.report is not None and each.report.ready
            for each in self._processes
        )

    def _log_silence(self, process: _Process, *, is_silent: bool) -> None:
        """Say so in the log too: not every installation polls the health."""
        if is_silent == process.known_silent:
            return
        process.known_silent = is_silent
        place = (process.number, len(self._processes))
        if is_silent:
            logger.error("process %d of %d has reported nothing for %g s", *place, self._silent)
        elif process.ended is None:
            logger.info("process %d of %d reports again", *place)


class _NotStarted(Exception):
    """A process could not be started."""


def _named(numbers: Sequence[int]) -> str:
    """Processes, in words."""
    return f"process {', '.join(map(str, numbers))}"


async def _first(*events: asyncio.Event) -> None:
    """Wait for one of them."""
    waiting = [asyncio.create_task(each.wait()) for each in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


def _reason(child: SpawnProcess, report: Report | None) -> str:
    """Why a process has ended."""
    code = child.exitcode or 0
    child.close()
    if report is not None and report.failure is not None:
        return f"has ended: {report.failure}"
    if code < 0:
        return f"was ended by {_signal(-code)}"
    return f"has ended with exit code {code}"


def _signal(number: int) -> str:
    """Its name; most of those for real time have none."""
    known = signal.Signals.__members__.values()
    return next((each.name for each in known if each == number), f"signal {number}")


@contextmanager
def _uninterrupted() -> Generator[None]:
    """A process that is started inside the block waits with SIGINT until it can handle it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(target: Target, number: int, channel: socket.socket) -> None:
    """The beginning of a process."""
    # Ctrl-C in a terminal reaches all processes at once: the parent then ends this one too.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    channel.set_inheritable(False)
    end_with(channel)
    target(number, channel)


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
