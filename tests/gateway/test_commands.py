"""Commands that ask a gateway: what operators keep, tokens, contexts."""

import json
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
    of = ("imports", QUEUE)
    first, second = await olga.json("dead-letter", "list", "--pipeline", "imports")
    assert "GivenUp" in await olga.says("dead-letter", "list", "--pipeline", "imports")
    assert "GivenUp" in await olga.says("dead-letter", "show", *of, str(first["number"]))
    corrected = tmp_path / "corrected.json"
    corrected.write_text('{"n": 1}')
    garbled = tmp_path / "garbled.json"
    garbled.write_bytes(b'{"n": "\xe4"}')
    body = ("dead-letter", "redrive", *of, str(first["number"]), "--body")
    assert "is not UTF-8" in await olga.says(*body, str(garbled), code=2)
    done = await olga.says(
        *("dead-letter", "redrive", *of, str(first["number"]), "--body", str(corrected))
    )
    assert done == f"1 dead letter of queue {QUEUE} sent again\n"
    gone = ("dead-letter", "remove", *of, "999", "--yes")
    assert "not there: 999" in await olga.says(*gone, code=1)
    assert "or --all" in await olga.says("dead-letter", "redrive", *of, code=2)
    assert "1 dead letter of" in await olga.says("dead-letter", "remove", *of, "--all", "--yes")
    assert second["queue"] == QUEUE
    empty = await olga.says("dead-letter", "list", "--pipeline", "imports")
    assert empty == "there are no dead letters\n"


async def test_schedules(stack: Stack, olga: Terminal) -> None:
    await reconcile(stack.client, ["imports"])
    found = {each["id"]: each for each in await olga.json("schedule", "list")}
    assert found["imports-retention"]["when"] == "daily at 04:00 UTC"
    assert "`docflow schedule reconcile`" in await olga.says("schedule", "list")
    id = "imports-retention"
    paused = await olga.says("schedule", "pause", id, "--reason", "audit")
    assert "olga paused it: audit" in paused
    assert (await olga.json("schedule", "show", id))["state"] == "paused"
    assert "olga triggered it" in await olga.says("schedule", "trigger", id)
    assert (await olga.json("schedule", "resume", id))["state"] == "active"
    assert "x" in await olga.says("schedule", "show", "x", code=1)


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
    assert "you have not logged in" in await terminal.says("context", "list")
    file.write_text(f"{OPERATOR}\n")
    assert "as context default" in await terminal.says(*login)
    await terminal.says(*login, "--name", "other")
    assert len(await terminal.json("schedule", "list")) > 3
    await terminal.says("context", "use", "default")
    found = await terminal.json("context", "list")
    assert [(each["name"], each["current"]) for each in found] == [
        ("default", True),
        ("other", False),
    ]
    assert OPERATOR not in await terminal.says("context", "list")
    await terminal.says("context", "remove", "default")
    assert "no gateway is known" in await terminal.says("schedule", "list", code=2)
    assert "there is no context default" in await terminal.says("context", "use", "default", code=2)
