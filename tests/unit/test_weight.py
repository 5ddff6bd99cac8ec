"""What the repository weighs."""

import subprocess
from pathlib import Path

from benchmarks.weight.__main__ import Weight, table


def test_each_tracked_file_counts_once_in_its_group(tmp_path: Path) -> None:
    files = {
        "activities/imports/rows.py": '"""A rule."""\n\nLIMIT = 1\n',
        "workflows/imports/row_classification.py": "\n",
        "workers/page.html": "<p>\n</p>\n",
        "stack/part.py": "START = True\n",
        "emulators/tests/test_queue.py": "START = True\n",
        "tests/test_rows.py": "\n\n",
        "deploy/run.sh": "true\n",
        "README.md": "not counted\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "activities/imports/untracked.py").write_text("\n" * 9)
    for command in (["init", "-q"], ["add", *files]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)

    found = table(tmp_path)

    nodes = 1 + 2 + 4  # Module; Expr, Constant; Assign, Name, Store, Constant.
    assert found["product"] == Weight(lines=4, files=2, folders=2, nodes=nodes + 1)
    assert found["  activities"] == Weight(lines=3, files=1, folders=1, nodes=nodes)
    assert found["templates and scripts"] == Weight(lines=2, files=1, folders=1, nodes=0)
    assert found["stack"].lines == found["emulators"].lines == found["deploy"].lines == 1
    assert found["tests"].lines == 2
