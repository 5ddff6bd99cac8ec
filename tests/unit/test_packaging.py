"""What the distribution promises has to be in its wheel."""

import json
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = DECLARED["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def test_no_extra_is_called_after_a_folder_that_no_wheel_holds() -> None:
    extras = DECLARED["project"]["optional-dependencies"]
    assert extras
    left_out = {path.name for path in ROOT.iterdir() if path.is_dir()} - set(PACKAGES)
    assert not extras.keys() & left_out


def test_entry_points_ask_for_no_extra_that_there_is_not() -> None:
    extras = DECLARED["project"]["optional-dependencies"]
    for group in DECLARED["project"]["entry-points"].values():
        for entry in group.values():
            _, _, asked = entry.partition(" [")
            assert not asked or asked.rstrip("]") in extras, entry


def test_the_client_is_a_wheel_that_needs_httpx_and_pydantic_alone(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT / "client",
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(tmp_path / "site")
        (metadata,) = (name for name in opened.namelist() if name.endswith("METADATA"))
        needed = message_from_bytes(opened.read(metadata)).get_all("Requires-Dist", [])
    assert {each.partition(">")[0] for each in needed} == {"httpx", "pydantic"}
    packages = Path(httpx.__file__).parents[1]
    program = f"""
import json, sys
sys.path[:0] = [{str(tmp_path / "site")!r}, {str(packages)!r}]
import docflow.client
docflow.client.Client("http://localhost", "t"), docflow.client.AsyncClient("http://localhost", "t")
found = {{name.partition(".")[0] for name in sys.modules}}
print(json.dumps([docflow.__file__, sorted(found & {{"workers", "workflows", "temporalio"}})]))
"""
    # Isolated, and without site-packages: the checkout is not on the path.
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    where, others = json.loads(done.stdout)
    assert (Path(where).is_relative_to(tmp_path), others) == (True, [])
