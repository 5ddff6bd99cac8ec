"""The tutorial is followed: every block of it is run, by processes as a user starts them."""

import asyncio
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any, Final, cast

import asyncpg
import pytest

from stack.children import free_port, start_child, stop_child
from stack.parts import DOCFLOW
from stack.temporal import temporal_server
from tests.support.cli import run_docflow
from tests.support.fresh_database import DATABASES
from tests.support.waiting import eventually
from workers.imports.messages import read_message
from workers.shared.cli.context import CliContext
from workflows.imports.messages import DeclaredMessage

PAGE = (Path(__file__).parents[2] / "docs" / "types.md").read_text(encoding="utf-8")
TUTORIAL = PAGE.partition("## Your own table")[2].partition("\n## ")[0]
BLOCK = re.compile(r"^ *```(\w+)(?: file=(\S+))?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LONGEST: Final = 300
"""Seconds of the ten minutes that the commands may take, on a machine that does other work too."""


@dataclass
class Reader:
    """Somebody who does what the page says, in one folder.

    Attributes:
        folder: Where.
        addresses: What the page writes for a server, to where it is.
        port: Of the gateway, which the page has at 8000.
        stack: Ends the processes that are left running.
        outputs: First two words of commands to what they printed.
        rows: What the last query found.
    """

    folder: Path
    addresses: dict[str, str]
    stack: AsyncExitStack
    port: int = field(default_factory=free_port)
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    rows: str = ""

    async def follow(self, kind: str, file: str, text: str) -> None:
        """Do what one block says."""
        if file:
            (self.folder / file).parent.mkdir(exist_ok=True)
            (self.folder / file).write_text(text, encoding="utf-8")
        elif kind == "sh":
            for written, place in self.addresses.items():
                assert written in text
                text = text.replace(written, place)
            (self.folder / "settings.sh").write_text(text, encoding="utf-8")
        elif kind == "sql":
            self.rows = await self._query(text)
        elif kind == "text":
            assert self.rows == text
        elif kind == "json":
            assert isinstance(read_message(text.encode(), ["tools"]), DeclaredMessage)
        else:
            assert kind == "console"
            for line in re.findall(r"^\$ (.*)$", text, re.MULTILINE):
                await self._command(line)

    async def _query(self, sql: str) -> str:
        connection = await cast("Any", asyncpg).connect(list(self.addresses.values())[-1])
        try:
            if not sql.startswith("SELECT"):
                await connection.execute(sql)
                return ""
            return "".join(f"{' | '.join(map(str, row))}\n" for row in await connection.fetch(sql))
        finally:
            await connection.close()

    async def _command(self, line: str) -> None:
        submitted = self.outputs.get("upload submit", "")
        line = line.replace("ID", "".join(re.findall(r"is upload (\S+);", submitted)))
        line = line.replace(":8000", f":{self.port}")
        run = line.replace("docflow ", f"exec {shlex.join(DOCFLOW)} ", 1)
        shell = ("bash", "-ec", f"cd {self.folder}; . ./settings.sh; {run}")
        own = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        if line == "docflow gateway" or line.startswith("docflow worker "):
            if line == "docflow gateway":
                shell = (*shell[:-1], f"{shell[-1]} --port {self.port}")
            child = await start_child(shell, self.folder / f"{line.split()[1]}.log", own)
            self.stack.push_async_callback(stop_child, child)
            return

        async def is_done() -> bool:
            done = await asyncio.create_subprocess_exec(
                *shell, env=own, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
            )
            output = (await done.communicate())[0].decode()
            assert done.returncode == 0, f"{line}\n{output}"
            command = " ".join(line.split()[1:3])
            self.outputs[command] = self.outputs.get(command, "") + output
            # The page says that an import takes some seconds.
            return not line.startswith("docflow upload show ") or "COMPLETED" in output

        await eventually(is_done)


@asynccontextmanager
async def reading(folder: Path) -> AsyncGenerator[Reader]:
    """Somebody with two empty databases and a Temporal server as it comes."""
    async with AsyncExitStack() as stack:
        own, erp = (stack.enter_context(DATABASES.empty()) for _ in range(2))
        temporal = await stack.enter_async_context(
            temporal_server(folder / "temporal", ui=False, in_memory=True, bare=True)
        )
        addresses = {
            "localhost:7233": temporal.address,
            "postgresql://docflow:secret@localhost/docflow": own,
            "postgresql://ann:secret@localhost/erp": erp,
        }
        (folder / "tutorial").mkdir()
        yield Reader(folder / "tutorial", addresses, stack)


async def test_the_tutorial_leads_to_rows_in_a_table_of_yours(tmp_path: Path) -> None:
    async with reading(tmp_path) as reader:
        began = time.monotonic()
        for kind, file, body in BLOCK.findall(TUTORIAL):
            block = time.monotonic()
            await reader.follow(kind, file, dedent(body))
            first = file or dedent(body).partition("\n")[0]
            print(f"{time.monotonic() - block:5.1f} s  {first[:70]}")
        seconds = time.monotonic() - began
        print(f"the commands of the tutorial take {seconds:.0f} s")
    assert "10 rows: 10 accepted, 0 rejected" in reader.outputs["type check"]
    assert "docflow_progress" in reader.outputs["type apply"]
    assert "is in force now" in reader.outputs["type apply"]
    assert "violates check constraint" in reader.outputs["import submit"]
    shown = reader.outputs["upload show"]
    assert "9 created, 0 updated, 0 skipped, 1 error" in shown
    for name in ("to-correct.xlsx", "stored.xlsx"):
        assert (reader.folder / name).exists()
    assert seconds < LONGEST


def test_the_draft_of_the_tutorial_leaves_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = next(body for kind, _, body in BLOCK.findall(TUTORIAL) if kind == "csv")
    (tmp_path / "tools.csv").write_text(dedent(sample), encoding="utf-8")
    done = run_docflow("type", "new", "tools", "--from", "tools.csv", context=CliContext({}))
    assert done.exit_code == 0, done.output
    assert "key: [tool_no]" in done.output
    assert "state:  # the sample has these values; are there others?" in done.output
    assert re.search(r"price:\n    kind: decimal\n    required: true", done.output)
    assert re.search(r"bought:\n    kind: date", done.output)
    drafted = Counter(
        line.partition("  #")[0].replace('"', "") for line in done.output.splitlines()
    )
    blocks = [(kind, file, dedent(body)) for kind, file, body in BLOCK.findall(TUTORIAL)]
    [wanted] = [Counter(body.splitlines()) for _, file, body in blocks if file.endswith(".yaml")]
    lines = (wanted - drafted).total()
    settings = sum(body.count("export ") for kind, _, body in blocks if kind == "sh")
    commands = sum(body.count("$ ") for kind, _, body in blocks if kind == "console")
    assert " ".join(TUTORIAL.split()).count(
        f"You write {lines + settings + commands + 1} lines: {settings} settings, {commands} "
        f"commands, {lines} lines of the type, and a query."
    ), (lines, settings, commands)
