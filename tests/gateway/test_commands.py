"""Commands that ask a gateway: what operators keep, tokens, contexts."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from typer.testing import Result

from stack.children import free_port
from tests.gateway.test_kept_api import QUEUE
from tests.gateway.test_kept_api import errands as errands
from tests.support.cli import run_docflow_in_thread
from tests.support.gateway import Stack, served, token
from workers.shared.cli.context import CliContext
from workers.shared.schedules import reconcile

pytestmark = pytest.mark.asyncio(loop_scope="session")
OPERATOR = token("olga", 1, "operator")
ADMIN = token("alma", 1, "admin")


class Terminal:
    """A person at a gateway."""

    def __init__(self, address: str, bearer: str) -> None:
        self.environment = {"DOCFLOW_ADDRESS": address, "DOCFLOW_TOKEN": bearer}

    async def says(self, *arguments: str, code: int = 0) -> str:
        """What a command prints, on one stream or the other."""
        done = await self.run(*arguments)
        assert done.exit_code == code, done.output
        return done.output if code == 0 else done.stderr

    async def run(self, *arguments: str) -> Result:
        return await run_docflow_in_thread(*arguments, context=CliContext(self.environment))

    async def json(self, *arguments: str) -> Any:
        return json.loads(await self.says(*arguments, "-o", "json"))


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def address(stack: Stack) -> AsyncIterator[str]:
    """A gateway that listens."""
    environment = {"AZURE_SERVICE_BUS_QUEUE_NAME": QUEUE}
    gateway = stack.gateway(allowed_hosts=("127.0.0.1",), environment=environment)
    async with served(gateway) as address:
        yield address


@pytest.fixture
def olga(address: str) -> Terminal:
    return Terminal(address, OPERATOR)


async def test_rejected_messages(stack: Stack, olga: Terminal, errands: None) -> None:
    hostile = b'{"x": "\x1b[2J\xe2\x80\xae[bold]"}\r\n'
    await stack.resources.rejected.record(QUEUE, "cli-1", "InvalidMessage", "no task", hostile)
    await stack.resources.rejected.record(QUEUE, "cli-2", "InvalidMessage", "no task", b"{")
    mine = ("message", "list", "--queue", QUEUE, "--open")
    second, first = (await olga.json(*mine))[:2]
    assert (second["message_id"], first["message_id"]) == ("cli-2", "cli-1")
    assert (await olga.says(*mine, "-o", "name")).split()[:2] == [
        str(second["id"]),
        str(first["id"]),
    ]
    shown = await olga.says("message", "show", str(first["id"]))
    assert r'{"x": "\x1b[2J\u202e[bold]"}' in shown and "\x1b" not in shown
    kept = yaml.safe_load(await olga.says("message", "show", str(first["id"]), "-o", "yaml"))
    assert kept["body"] == hostile.decode()
    number = str(second["id"])
    refused = await olga.says("message", "retry", number, code=2)
    assert "would be rejected again" in refused and len(refused.splitlines()) == 1
    assert f"sent message {number} to queue" in await olga.says(
        "message", "retry", number, "--force"
    )
    await olga.says("message", "dismiss", str(first["id"]), "--reason", "a test")
    left = [each["message_id"] for each in await olga.json(*mine)]
    assert not {"cli-1", "cli-2"} & set(left)
    nothing = await olga.says("message", "list", "--queue", "nobody's")
    assert nothing == "no message was rejected\n"
    assert "no rejected message 999999" in await olga.says("message", "show", "999999", code=1)


async def test_dead_letters(olga: Terminal, errands: None, tmp_path: Path) -> None:
    listing = ("message", "list", "--dead-letters", "--pipeline", "imports")
    _, second = await olga.json(*listing)
    assert "GivenUp" in await olga.says(*listing)
    first, _ = (await olga.says(*listing, "-o", "name")).split()
    assert "GivenUp" in await olga.says("message", "show", first)
    corrected = tmp_path / "corrected.json"
    corrected.write_text('{"n": 1}')
    garbled = tmp_path / "garbled.json"
    garbled.write_bytes(b'{"n": "\xe4"}')
    body = ("message", "retry", first, "--body")
    assert "is not UTF-8" in await olga.says(*body, str(garbled), code=2)
    done = await olga.says(*body, str(corrected))
    assert done == f"1 dead letter of queue {QUEUE} sent again\n"
    queue = f"imports/{QUEUE}"
    gone = ("message", "dismiss", f"{queue}/999", "--yes")
    assert "not there: 999" in await olga.says(*gone, code=1)
    assert "1 dead letter of" in await olga.says("message", "dismiss", queue, "--all", "--yes")
    assert second["queue"] == QUEUE
    assert await olga.says(*listing) == "there are no dead letters\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "imports"), "'imports' is neither the number of a rejected message nor PIPELINE"),
        (("retry", "7", "imports/q/7"), "name rejected messages or dead letters, not both"),
        (("retry", "imports/q/7", "--force"), "--force is of rejected messages"),
        (("retry", "7", "8", "--body", "README.md"), "--body takes one ID"),
        (("dismiss", "7", "--all"), "--all takes one PIPELINE/QUEUE"),
        (("dismiss", "imports/q", "imports/r", "--all"), "--all takes one PIPELINE/QUEUE"),
        (("dismiss", "imports/q/7", "--reason", "x"), "--reason is of rejected messages"),
        (("list", "--dead-letters", "--open"), "--reason and --open are of rejected messages"),
        (("list", "--bridge", "x"), "--pipeline and --bridge go with --dead-letters"),
    ],
)
async def test_what_does_not_go_together(
    olga: Terminal, arguments: tuple[str, ...], says: str
) -> None:
    assert says in await olga.says("message", *arguments, code=2)


async def test_schedules(stack: Stack, olga: Terminal) -> None:
    await reconcile(stack.client, ["imports"])
    found = {each["id"]: each for each in await olga.json("schedule", "list")}
    assert found["imports-retention"]["when"] == "daily at 04:00 UTC"
    assert "`docflow setup --schedules`" in await olga.says("schedule", "list")
    id = "imports-retention"
    paused = await olga.says("schedule", "pause", id, "--reason", "audit")
    assert "olga paused it: audit" in paused
    assert (await olga.json("schedule", "list", id))["state"] == "paused"
    assert "olga triggered it" in await olga.says("schedule", "trigger", id)
    assert (await olga.json("schedule", "resume", id))["state"] == "active"
    assert "x" in await olga.says("schedule", "list", "x", code=1)


async def test_tokens_and_the_audit(address: str, tmp_path: Path) -> None:
    alma = Terminal(address, ADMIN)
    name = f"import {datetime.now(UTC):%H%M%S%f}"
    made = await alma.json(*("token", "create", name, "--role", "operator", "--days", "2"))
    program = Terminal(address, made["token"])
    assert await program.json("message", "list", "--limit", "1") is not None
    assert name in await alma.says("token", "list")
    await alma.says("token", "revoke", str(made["id"]))
    listed = {each["id"]: each for each in await alma.json("token", "list")}
    assert listed[made["id"]]["revoked_at"] is not None
    entries = await alma.json("audit", "--who", "alma", "--limit", "300")
    assert {"makeToken", "revokeToken"} <= {each["action"] for each in entries}
    assert "revokeToken" in await alma.says("audit", "--action", "revokeToken")
    since = await alma.json("audit", "--since", "2999-01-01")
    assert since == []


async def test_who_may_not_is_told_in_one_line(address: str) -> None:
    mapper = Terminal(address, token("ida"))
    refused = await mapper.says("schedule", "list", code=1)
    assert refused.startswith("docflow: ") and len(refused.splitlines()) == 1
    away = Terminal(f"http://127.0.0.1:{free_port()}", "x")
    assert "does not answer" in await away.says("token", "list", code=1)
    nowhere = Terminal("", "")
    nowhere.environment = {"DOCFLOW_CONTEXTS": "/nowhere/contexts.json"}
    assert "docflow login ADDRESS" in await nowhere.says("token", "list", code=2)


async def test_a_person_logs_in_once(address: str, tmp_path: Path) -> None:
    terminal = Terminal("", "")
    terminal.environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    file = tmp_path / "token"
    file.write_text("nonsense\n")
    login = ("login", address, "--token-file", str(file))
    assert "docflow: " in await terminal.says(*login, code=1)
    assert "you have not logged in" in await terminal.says("context")
    file.write_text(f"{OPERATOR}\n")
    assert "as context default" in await terminal.says(*login)
    await terminal.says(*login, "--name", "other")
    assert len(await terminal.json("schedule", "list")) > 3
    piped = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "workers.shared.cli", "login", address],
        env={**os.environ, **terminal.environment},
        input=OPERATOR,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (piped.stdout, piped.stderr) == (f"logged in to {address} as context default\n", "")
    await terminal.says("context", "default")
    found = await terminal.json("context")
    assert [(each["name"], each["current"]) for each in found] == [
        ("default", True),
        ("other", False),
    ]
    assert OPERATOR not in await terminal.says("context")
    await terminal.says("context", "default", "--remove")
    assert "no gateway is known" in await terminal.says("schedule", "list", code=2)
    assert "there is no context default" in await terminal.says("context", "default", code=2)
