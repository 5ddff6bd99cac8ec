"""`python -m emulators.service_bus` as a shell sees it."""

import asyncio
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from azure.servicebus.aio import ServiceBusClient

PROGRAM = (sys.executable, "-m", "emulators.service_bus")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--messages", "/missing/x"], 1, "cannot use /missing/x: unable"),
        (["--queue", "q:lock=x"], 2, "--queue: 'lock=x' of queue 'q'"),
        (["--queue", "q", "--queue", "q"], 2, "--queue: q is named twice"),
    ],
)
def test_what_is_wrong_is_one_line(arguments: list[str], code: int, says: str) -> None:
    done = _run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr.splitlines()[-1]


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = _run("--port", str(port))
    assert done.returncode == 1
    assert done.stderr.startswith(f"cannot listen on port {port}: ")


async def test_it_runs_until_it_is_stopped() -> None:
    process = await asyncio.create_subprocess_exec(
        *(*PROGRAM, "--port", "0", "--queue", "a:lock=5", "--queue", "b"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        name, _, value = line.strip().partition("=")
        assert name == "AZURE_SERVICE_BUS_CONNECTION_STRING"
        async with (
            ServiceBusClient.from_connection_string(value.strip("'")) as client,
            client.get_queue_receiver("b") as receiver,
        ):
            assert await receiver.peek_messages(1) == []
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            code = await process.wait()
    assert code == 0


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
