"""What `deploy/` says to docflow and to Temporal has to be what they understand."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer.main

from stack.temporal import dev_server_arguments
from workers.shared.cli.app import app

ROOT = Path(__file__).parents[2]
FILES = sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file())


def _argument_lists() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every `["worker", ...]` that some file hands to the `docflow` program."""
    known = set(typer.main.get_group(app).commands)
    for path in FILES:
        for found in re.findall(r"\[\"[^\]]+\]", path.read_text()):
            words = json.loads(found)
            if words[0] in known:
                yield path.name, tuple(words)
        for found in re.findall(r"^ExecStart=\S+/docflow (.+)$", path.read_text(), re.MULTILINE):
            yield path.name, tuple(found.replace("%i", "1").split())


ARGUMENTS = list(_argument_lists())


def test_image_compose_and_systemd_start_docflow() -> None:
    started = {name for name, _ in ARGUMENTS}
    assert {"Dockerfile", "compose.yaml", "docflow-worker@.service"} <= started


@pytest.mark.parametrize(("file", "words"), ARGUMENTS, ids=lambda value: "".join(value))
def test_its_arguments_are_those_of_a_command(file: str, words: tuple[str, ...]) -> None:
    command: Any = typer.main.get_command(app)
    arguments = list(words)
    while hasattr(command, "commands"):
        command = command.commands[arguments.pop(0)]
    # Parses and checks the arguments, and does nothing.
    command.make_context("docflow", arguments)


def test_the_search_attributes_are_those_of_the_embedded_server() -> None:
    compose = (ROOT / "deploy" / "compose.yaml").read_text()
    arguments = dev_server_arguments(None)
    ours = {value for name, value in pairwise(arguments) if "attr" in name}
    assert set(re.findall(r"--search-attribute=(\S+)", compose)) == ours


def test_every_setting_is_one_that_docflow_reads() -> None:
    workers = ROOT / "workers"
    read = "".join(path.read_text() for path in workers.rglob("*.py"))
    compose = (ROOT / "deploy" / "compose.yaml").read_text()
    block = compose[compose.index("x-docflow:") : compose.index("services:")]
    gateway = compose[compose.index("  gateway:") :]
    named = set(re.findall(r"^ {4,6}([A-Z_]+):", block + gateway, re.MULTILINE))
    assert len(named) >= 9
    assert {name for name in named if name not in read} == set()
