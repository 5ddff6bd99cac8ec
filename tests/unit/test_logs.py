"""A line of the log says what it is about, in text and in JSON."""

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.testing import ActivityEnvironment

from adapters.ports.errors import Denied
from tests.support.memory_queue import MemoryQueue, MemoryTransport
from workers.shared.bridges.consumer import Consumer, Limits
from workers.shared.logs import JsonLines, Redaction, TextLines, bound
from workers.shared.services.bodies import Settle, Verdict

logger = logging.getLogger("tests.logs")
ROOT = Path(__file__).parents[2]
WEBHOOK = "http://hooks.example.org/services/planted-in-the-webhook?to=planted"


class Log:
    """What was logged, as a process writes it."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self._stream = io.StringIO()
        self.handler = logging.StreamHandler(self._stream)
        self.handler.setFormatter(formatter)

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


def attached(formatter: logging.Formatter) -> Iterator[Log]:
    log = Log(formatter)
    logger.addHandler(log.handler)
    logger.setLevel(logging.INFO)
    yield log
    logger.removeHandler(log.handler)


@pytest.fixture
def as_json() -> Iterator[Log]:
    yield from attached(JsonLines(Redaction()))


@pytest.fixture
def as_text() -> Iterator[Log]:
    yield from attached(TextLines(Redaction()))


def test_an_event_is_one_json_object(as_json: Log) -> None:
    with bound(message_id="m1", queue=None):
        logger.warning("%s rows\nleft out", 3)
    [line] = as_json.lines
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "tests.logs",
        "message": "3 rows\nleft out",
        "message_id": "m1",
    }


def test_text_has_the_same_facts_and_steers_no_terminal(as_text: Log) -> None:
    with bound(message_id="m1"):
        logger.info("\x1b[31mred")
    assert as_text.text.endswith(" INFO tests.logs: \\x1b[31mred [message_id=m1]\n")


async def test_whatever_an_activity_logs_names_its_run(as_json: Log) -> None:
    @activity.defn(name="imports.look")
    async def look() -> None:
        # A library of ours that knows nothing of Temporal, on a thread.
        await asyncio.to_thread(logger.info, "looking")

    environment = ActivityEnvironment()
    await environment.run(look)
    [line] = as_json.lines
    known = environment.info
    assert line["workflow_id"] == known.workflow_id
    assert (line["run_id"], line["attempt"]) == (known.workflow_run_id, 1)
    assert (line["pipeline"], line["activity"]) == (known.task_queue, known.activity_type)


async def test_whatever_a_bridge_logs_names_the_message(as_json: Log) -> None:
    async def accept(raw: bytes, _earlier: int, _message_id: str | None) -> Verdict:
        logger.info("deciding about %s", raw.decode())
        return Settle("run")

    queue = MemoryQueue()
    queue.send("a", "b")
    transport = MemoryTransport(queue)
    await Consumer(transport, accept, Limits(wait=0.2, quiet=0.3)).run(asyncio.Event(), drain=True)
    seen = {line["message"]: (line["message_id"], line["queue"]) for line in as_json.lines}
    assert seen == {
        "deciding about a": ("m1", transport.name),
        "deciding about b": ("m2", transport.name),
    }


def raised(error: Exception, cause: Exception | None = None) -> None:
    try:
        raise error from cause
    except type(error):
        logger.warning("not done", exc_info=True)


@pytest.mark.parametrize(
    ("error", "cause", "shown"),
    [
        (Denied("no such folder"), None, "Denied: no such folder"),
        (ApplicationError("row 3", type="INVALID"), Denied("row 3"), "INVALID: row 3"),
        (
            FailureError("the step failed"),
            ApplicationError("row 3", type="INVALID"),
            "FailureError: the step failed; INVALID: row 3",
        ),
    ],
)
def test_a_mistake_of_a_user_has_no_traceback(
    as_json: Log, error: Exception, cause: Exception | None, shown: str
) -> None:
    raised(error, cause)
    [line] = as_json.lines
    assert line["error"] == shown


@pytest.mark.parametrize("cause", [None, LookupError("a defect")])
def test_a_defect_has_its_traceback(as_json: Log, cause: Exception | None) -> None:
    if cause is None:
        raised(LookupError("a defect"))
    else:
        raised(ApplicationError("unexpected LookupError: a defect"), cause)
    [line] = as_json.lines
    assert "Traceback" in line["error"] and "LookupError: a defect" in line["error"]


def test_a_secret_in_a_message_or_a_failure_is_hidden(as_json: Log, as_text: Log) -> None:
    raised(Denied("https://host/blob?sig=planted"))
    logger.info("https://host/blob?sig=%s", "planted")
    assert "planted" not in as_json.text + as_text.text
    assert len(as_json.lines) == 2


@pytest.fixture
def everything() -> Iterator[Log]:
    """What all libraries log, at their most talkative."""
    log = Log(JsonLines(Redaction.of({"DOCFLOW_NOTIFY_WEBHOOK_URL": WEBHOOK})))
    root = logging.getLogger()
    # A process that a test before this one was like has silenced the clients.
    talkative = [root, logging.getLogger("httpx"), logging.getLogger("httpcore")]
    before = [logger.level for logger in talkative]
    root.addHandler(log.handler)
    for logger in talkative:
        logger.setLevel(logging.DEBUG)
    yield log
    root.removeHandler(log.handler)
    for logger, level in zip(talkative, before, strict=True):
        logger.setLevel(level)


async def test_http_clients_tell_no_address_with_a_secret(everything: Log) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        webhook = WEBHOOK.replace("hooks.example.org", f"127.0.0.1:{port}")
        async with httpx.AsyncClient() as client:
            await client.post(webhook)
            await client.get(f"http://127.0.0.1:{port}/blob?X-Amz-Signature=planted")
    assert "HTTP Request" in everything.text
    assert "planted" not in everything.text


def test_a_process_logs_no_requests_of_its_http_clients() -> None:
    code = """
import logging, os
from workers.shared.logs import configure_logs
configure_logs({"DOCFLOW_LOG_FORMAT": "json"})
for name in ("httpx", "httpcore", "botocore", "azure.core", "urllib3"):
    logging.getLogger(name).info("GET https://host/planted")
logging.getLogger("workers").info("ready")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={}, capture_output=True, text=True, check=True
    )
    [line] = [json.loads(line) for line in done.stderr.splitlines()]
    assert (line["message"], done.stdout) == ("ready", "")
