"""The sample package, built as a wheel and installed into a folder of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.types.conftest import installation as installation

PACKAGE = Path(__file__).parent / "package"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed package, for the paths of Python."""
    folder = tmp_path_factory.mktemp("extend")
    _python("hatchling", "build", "-t", "wheel", "-d", str(folder), at=PACKAGE)
    [wheel] = folder.glob("*.whl")
    site = folder / "site"
    options = ("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check")
    _python("pip", "install", *options, "--target", str(site), str(wheel), at=folder)
    return site


def _python(*arguments: str, at: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=at,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
