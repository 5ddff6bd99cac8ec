"""What the distribution promises has to be in its wheel."""

import tomllib
from pathlib import Path

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
