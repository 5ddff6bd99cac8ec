"""The reference page of settings is what its command writes."""

import re
import subprocess
import sys
from pathlib import Path

from workers.shared.settings.check import declared_groups
from workers.shared.settings.reference import page

ROOT = Path(__file__).parents[2]
COMMITTED = (ROOT / "docs" / "reference" / "settings.md").read_text()


def test_the_committed_page_is_what_the_command_writes() -> None:
    command = [sys.executable, "-W", "error", "-m", "workers.shared.settings.reference"]
    written = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert written.stdout == COMMITTED, "run `python -m workers.shared.settings.reference`"


def test_the_page_is_the_same_each_time() -> None:
    assert page() == page() == COMMITTED


def test_every_setting_has_one_row_that_describes_it() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", COMMITTED, re.MULTILINE)
    names = [name for name, _ in rows]
    declared = {each.name: each for group in declared_groups() for each in group.declared()}
    assert len(names) == len(set(names))
    assert declared.keys() <= set(names)
    for name, each in declared.items():
        assert each.info.description, name
        assert f"| {each.kind} |" in COMMITTED, name
        marked = re.search(rf"^\| `{name}` \|.*\| secret \|", COMMITTED, re.MULTILINE)
        assert bool(marked) is each.setting.secret, name
