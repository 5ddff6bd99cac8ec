"""What an installation is made of, and what must never be in the repository."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stack.supply import BASELINE, LOCK, is_denied, licences, locked, new_secrets, problems

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("licence", "denied"),
    [
        ("MIT", False),
        ("Apache-2.0 AND MIT", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("EPL-2.0 OR GPL-2.0-or-later", False),
        ("GPL-3.0-only", True),
        ("MIT AND GPL-2.0-only", True),
        ("AGPL-3.0-or-later OR GPL-3.0-only", True),
        ("GNU General Public License v3 or later (GPLv3+)", True),
        ("GNU Affero General Public License v3", True),
        ("UNKNOWN", True),
    ],
)
def test_licences_that_are_denied(licence: str, denied: bool) -> None:
    assert is_denied(licence) is denied


def test_every_package_of_an_installation_has_a_licence_that_allows_it() -> None:
    packages = locked(LOCK)
    assert len(packages) > 100
    found = licences(packages)
    assert found.keys() == packages.keys()
    assert list(problems(found, [])) == []


def test_a_package_that_is_not_as_locked_has_no_known_licence() -> None:
    assert licences({"pydantic": "0.1", "no-such-package": "1.0"}) == {
        "no-such-package": "UNKNOWN",
        "pydantic": "UNKNOWN",
    }


def test_only_packages_that_this_machine_needs_count(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(
        "elsewhere==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:00\n"
        "Py_Here==2.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n"
    )
    assert locked(lock) == {"py-here": "2.0"}


def test_a_secret_is_found_unless_the_baseline_accepts_it(tmp_path: Path) -> None:
    baseline = json.loads(BASELINE.read_text())
    file = tmp_path / "deploy.py"
    file.write_text("".join(("x = 1\n", "aws = 'AKIA", "QYLPMN5HFIQR7XYA'\n")))
    found = new_secrets([str(file)], baseline)
    (problem,) = problems({}, found)
    assert "deploy.py:2: looks like a secret (AWS Access Key)" in problem
    ((name, secret),) = found
    accepted = {**baseline, "results": {name: [secret.secret_hash]}}
    assert list(new_secrets([str(file)], accepted)) == []


@pytest.mark.chaos(alone=True)
def test_the_repository_has_no_secrets_that_nobody_has_looked_at() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "stack.supply"], capture_output=True, text=True, cwd=ROOT
    )
    assert checked.returncode == 0, checked.stderr
