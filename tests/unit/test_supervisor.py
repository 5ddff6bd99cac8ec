"""A worker of several processes keeps all of them running, and leaves none behind."""

import asyncio
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.support.forks import ended
from tests.support.processes import ROOT
from tests.support.waiting import eventually
from tests.support.worker_processes import (
    fails,
    fails_after_a_report,
    hangs,
    never_reports,
    waits_for_the_database,
    works,
)
from workers.shared.bridges.consumer import Retry
from workers.shared.health import Health
from workers.shared.health_server import liveness_answer
from workers.shared.process import Report, channel, end_with
from workers.shared.supervisor import Supervisor, Target

SOON = Retry(first_pause=0.01, longest_pause=0.01)
LATE = Retry(first_pause=500.0, longest_pause=500.0)


@asynccontextmanager
async def supervised(
    target: Target, health: Health, *, pauses: Retry = SOON, silent: float = 600.0
) -> AsyncGenerator[Supervisor]:
    """Two processes, which are ended with the block."""
    stop = asyncio.Event()
    supervisor = Supervisor(target, 2, health, pauses=pauses, silent=silent)
    running = asyncio.create_task(supervisor.run(stop))
    try:
        yield supervisor
    finally:
        stop.set()
        await running


@contextmanager
def hangups(*, ignored: bool) -> Generator[None]:
    """Whether processes that are started within the block ignore SIGHUP, as below `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def of(folder: Path, number: int) -> set[int]:
    """Ids of the processes with a number."""
    return {int(each.name.rpartition("-")[2]) for each in folder.glob(f"{number}-*")}


async def test_a_process_that_dies_is_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    health = Health()

    async def all_ready() -> bool:
        return health.ready

    async with supervised(partial(works, tmp_path), health) as supervisor:
        await eventually(all_ready)
        assert supervisor.metrics == {"1": "127.0.0.1:1", "2": "127.0.0.1:2"}
        [killed] = of(tmp_path, 2)
        os.kill(killed, signal.SIGKILL)

        async def another() -> bool:
            return len(of(tmp_path, 2)) == 2 and health.ready

        await eventually(another)
        assert supervisor.starts == {"1": 1, "2": 2}
        assert "process 2 of 2 was ended by SIGKILL; it is started again" in caplog.text
        assert health.problems == []
    survivors = {*of(tmp_path, 1), *of(tmp_path, 2)} - {killed}
    ended = {int(each.name.rpartition("-")[2]) for each in tmp_path.glob("ended-*")}
    assert ended == survivors


async def test_a_process_that_fails_again_and_again_says_why(tmp_path: Path) -> None:
    health = Health()

    async def refused() -> bool:
        return len([*tmp_path.glob("start-*")]) > 1 and bool(health.problems)

    async with supervised(partial(fails, tmp_path), health):
        await eventually(refused)
        [problem] = health.problems
        assert problem.startswith(
            "process 1: has ended: Temporal refuses its schedules; it is started again within"
        )
        assert not health.ready


async def test_a_process_that_waits_for_its_next_start_is_not_stuck(
    caplog: pytest.LogCaptureFixture,
) -> None:
    health = Health()

    async def both_have_ended() -> bool:
        return caplog.text.count("has ended with exit code 1") == 2

    async with supervised(fails_after_a_report, health, pauses=LATE, silent=0.0):
        await eventually(both_have_ended)
        loop = asyncio.get_running_loop()
        silent_since = loop.time()

        async def looked_at_again() -> bool:
            return loop.time() > silent_since + 2.5

        await eventually(looked_at_again)
        assert health.stuck == ()
        assert liveness_answer(health).status_code == 200


async def test_a_process_that_never_reports_is_named() -> None:
    health = Health()

    async def named() -> bool:
        return health.problems == ["it has not reported since it was started"]

    async with supervised(never_reports, health, silent=0.5):
        await eventually(named)
        assert not health.stuck


async def test_a_start_that_the_machine_refuses_ends_no_other_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    health = Health()

    async def all_ready() -> bool:
        return health.ready

    async with supervised(partial(works, tmp_path), health) as supervisor:
        await eventually(all_ready)
        [first], [second] = of(tmp_path, 1), of(tmp_path, 2)

        async def refused() -> bool:
            return "process 2 of 2 cannot be started: Too many open files" in caplog.text

        with _no_more_files():
            os.kill(second, signal.SIGKILL)
            await eventually(refused)
        await eventually(all_ready)
        assert of(tmp_path, 1) == {first}
        assert supervisor.starts == {"1": 1, "2": 2}


@contextmanager
def _no_more_files() -> Generator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("number", "name"), [(signal.SIGHUP, "has ended with exit code 0"), (40, "signal 40")]
)
async def test_a_process_that_ends_by_any_signal_is_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, number: int, name: str
) -> None:
    health = Health()

    async def all_ready() -> bool:
        return health.ready

    with hangups(ignored=False):
        async with supervised(partial(works, tmp_path), health):
            await eventually(all_ready)
            [ended] = of(tmp_path, 1)
            os.kill(ended, number)

            async def another() -> bool:
                return len(of(tmp_path, 1)) == 2 and health.ready

            await eventually(another)
            assert name in caplog.text


async def test_what_all_processes_lack_is_reported_once() -> None:
    health = Health()

    async def both_said() -> bool:
        return health.problems == ["the database is not available", "process 2: no memory"]

    async with supervised(waits_for_the_database, health):
        await eventually(both_said)
        assert not health.ready


async def test_a_process_that_hangs_is_no_longer_live(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    health = Health()

    async def all_ready() -> bool:
        return health.ready

    async def stuck() -> bool:
        return bool(health.stuck)

    async with supervised(partial(works, tmp_path), health, silent=1.0):
        await eventually(all_ready)
        [hanging] = of(tmp_path, 1)
        os.kill(hanging, signal.SIGSTOP)
        try:
            await eventually(stuck)
            assert liveness_answer(health).status_code == 503
            assert health.stuck == ("process 1 reports nothing",)
            assert health.problems == ["process 1: it reports nothing"]
            assert caplog.text.count("process 1 of 2 has reported nothing for 1 s") == 1
        finally:
            os.kill(hanging, signal.SIGCONT)

        async def lives() -> bool:
            return not health.stuck

        await eventually(lives)
        assert liveness_answer(health).status_code == 200
        assert caplog.text.count("process 1 of 2 reports again") == 1


async def test_a_stop_does_not_wait_for_the_next_start(tmp_path: Path) -> None:
    health = Health()

    async def refused() -> bool:
        return bool(health.problems)

    async with asyncio.timeout(100):
        async with supervised(partial(fails, tmp_path), health, pauses=LATE):
            await eventually(refused)


async def test_a_parent_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "tests.support.worker_processes", str(tmp_path))
    parent = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )

    async def both_work() -> bool:
        return bool(of(tmp_path, 1) and of(tmp_path, 2))

    await eventually(both_work, seconds=120)
    processes = [psutil.Process(id) for number in (1, 2) for id in of(tmp_path, number)]
    parent.kill()
    # Its end is that of all processes: they write there too.
    _, said = await parent.communicate()

    async def gone() -> bool:
        return not any(each.is_running() for each in processes)

    await eventually(gone)
    assert len([*tmp_path.glob("ended-*")]) == 2
    assert said.decode().count("the parent of this process is gone, so it ends too") == 2


@pytest.mark.parametrize("is_ignored", [False, True], ids=["closed", "nohup"])
async def test_a_closed_terminal_ends_a_process_in_order_unless_it_was_to_outlive_it(
    tmp_path: Path, is_ignored: bool
) -> None:
    command = (sys.executable, "-m", "tests.support.worker_processes", str(tmp_path))
    with hangups(ignored=is_ignored):
        parent = await asyncio.create_subprocess_exec(*command, cwd=ROOT)

    async def both_work() -> bool:
        return bool(of(tmp_path, 1) and of(tmp_path, 2))

    await eventually(both_work, seconds=120)
    parent.send_signal(signal.SIGHUP)
    if is_ignored:
        parent.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(parent.wait(), 60) == 0
    assert len([*tmp_path.glob("ended-*")]) == 2


async def test_a_process_whose_parent_is_gone_ends_though_it_hangs() -> None:
    ours, theirs = channel()
    process = multiprocessing.get_context("spawn").Process(target=_abandoned, args=(theirs,))
    with ours, theirs:
        process.start()
        theirs.close()
        loop = asyncio.get_running_loop()
        ours.setblocking(False)
        report = Report.unpacked(await loop.sock_recv(ours, 1 << 16))
        assert report.failure == str(process.pid)
    await ended(process, 60)
    assert process.exitcode == 1
    process.close()


def _abandoned(theirs: socket.socket) -> None:
    end_with(theirs, grace=0.1)
    hangs(1, theirs)
