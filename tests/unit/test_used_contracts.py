"""Contracts are built when they are used; a worker builds those of its pipelines before that."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json
from types import SimpleNamespace
import workers.catalogue
from workflows.shared.contracts import Contract
from workers.shared.plugin import docflow_plugin

def known(contract=Contract):
    for each in contract.__subclasses__():
        yield each
        yield from known(each)

def built():
    return sorted({each.__module__ for each in known() if each.__pydantic_complete__})

before, all = built(), sorted({each.__module__ for each in known()})
from workflows.imports.document_import import DocumentImport
client = SimpleNamespace(config=lambda **_: {})
work = {"client": client, "workflows": [DocumentImport], "activities": []}
docflow_plugin().configure_worker(work)
open = [each.__name__ for each in known() if not each.__pydantic_complete__
        and each.__module__.startswith(("workflows.shared.", "workflows.imports."))]
print(json.dumps([all, before, built(), open]))
"""


def test_a_worker_builds_the_contracts_of_its_pipelines_and_no_others() -> None:
    """In a process of its own: in this one, tests have used them."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    known, before, after, left = json.loads(done.stdout)
    # Some contracts are values of their modules.
    assert len(before) < len(known) / 2
    assert left == []
    built = {module for module in after if module not in before}
    assert {"workflows.imports.messages", "workflows.shared.notifications"} <= built
    words = {module.split(".")[1] for module in built}
    assert "imports" in words
    assert not words & {"batches", "jobs", "transfers"}
