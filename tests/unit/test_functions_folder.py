"""The folder that is published as a function app holds what its host needs."""

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from workers.imports.settings import QueueSettings
from workers.shared.settings.check import check_settings
from workers.shared.settings.common import DatabaseSettings

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "deploy" / "functions"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("functions") / "app"
    subprocess.run([RECIPE / "build.sh", made], check=True, capture_output=True)
    return made


def pinned(folder: Path) -> set[str]:
    text = (folder / "requirements.txt").read_text()
    return {canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}


def test_the_host_finds_the_function(folder: Path) -> None:
    """From the folder alone: nothing of the checkout is on the path."""
    program = (
        "import function_app, workers, json; [found] = function_app.app.get_functions(); "
        "[binding] = found.get_dict_repr()['bindings']; "
        "print(json.dumps([found.get_function_name(), binding, workers.__file__], default=str))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    name, binding, place = json.loads(done.stdout)
    assert name == "imports"
    assert binding["type"] == "serviceBusTrigger"
    assert binding["queueName"] == "%AZURE_SERVICE_BUS_QUEUE_NAME%"
    assert binding["connection"] == "AZURE_SERVICE_BUS_CONNECTION_STRING"
    assert Path(place).is_relative_to(folder)


def test_what_it_needs_is_pinned(folder: Path) -> None:
    names = pinned(folder)
    wanted = ["azure-functions"]
    seen: set[str] = set()
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name in seen:
            continue
        seen.add(name)
        assert name in names, f"{name} is not in requirements.txt"
        for text in importlib.metadata.requires(name) or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(requirement.name)
    own = {line.split("==")[0] for line in (ROOT / "requirements.lock").read_text().split("\n")}
    assert {canonicalize_name(name) for name in own if re.fullmatch(r"[\w.-]+", name)} <= names


def test_the_host_renews_locks_and_completes_messages(folder: Path) -> None:
    host = json.loads((folder / "host.json").read_text())
    bus = host["extensions"]["serviceBus"]
    assert host["version"] == "2.0"
    assert bus["autoCompleteMessages"] is True
    assert host["functionTimeout"] == bus["maxAutoLockRenewalDuration"] == "00:05:00"


def test_the_example_settings_are_those_that_it_reads() -> None:
    values = json.loads((RECIPE / "local.settings.json.example").read_text())["Values"]
    check_settings(values, QueueSettings, DatabaseSettings)
    assert values["FUNCTIONS_WORKER_RUNTIME"] == "python"


def test_a_folder_that_exists_is_left_alone(folder: Path) -> None:
    again = subprocess.run([RECIPE / "build.sh", folder], check=False, capture_output=True)
    assert (again.returncode, b"exists" in again.stderr) == (2, True)
