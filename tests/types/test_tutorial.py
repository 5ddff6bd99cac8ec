"""The tutorial is followed: every file of it is written, and every command of it is run."""

import re
import shlex
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.cli import run_docflow
from tests.support.fresh_database import fresh_url
from workers.imports.messages import read_message
from workers.shared.cli.context import CliContext
from workflows.imports.messages import DeclaredMessage

PAGE = (Path(__file__).parents[2] / "docs" / "types.md").read_text(encoding="utf-8")
TUTORIAL = PAGE.partition("## Your own table")[2].partition("\n## ")[0]
BLOCK = re.compile(r"^ *```(\w+)(?: file=(\S+))?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def test_every_step_of_the_tutorial_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "types").mkdir()
    context = CliContext({"DATABASE_URL": fresh_url(), "TEMPORAL_ADDRESS": "127.0.0.1:1"})
    outputs: dict[str, str] = {}
    for kind, file, body in BLOCK.findall(TUTORIAL):
        if file:
            (tmp_path / file).write_text(dedent(body), encoding="utf-8")
        if kind == "json":
            message = read_message(dedent(body).encode(), ["tools"])
            assert isinstance(message, DeclaredMessage)
        for line in re.findall(r"\$ docflow (.*)", body) if kind == "console" else ():
            done = run_docflow(*shlex.split(line), context=context)
            assert done.exit_code == 0, f"{line}\n{done.output}"
            outputs[" ".join(line.split()[:2])] = done.output
    assert "9 rows: 9 accepted, 0 rejected" in outputs["types check"]
    assert "CREATE TABLE docflow_types.tools" in outputs["types plan"]
    assert "is in force now" in outputs["types apply"]
    assert (tmp_path / "stored.xlsx").exists()


def test_the_draft_of_the_tutorial_asks_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = next(body for kind, _, body in BLOCK.findall(TUTORIAL) if kind == "csv")
    (tmp_path / "tools.csv").write_text(dedent(sample), encoding="utf-8")
    done = run_docflow("types", "new", "tools", "--from", "tools.csv", context=CliContext({}))
    assert done.exit_code == 0, done.output
    assert "key: [tool_no]" in done.output
    assert "state:  # the sample has these values; are there others?" in done.output
    assert re.search(r"price:\n    kind: decimal\n    required: true", done.output)
    assert re.search(r"bought:\n    kind: date", done.output)
