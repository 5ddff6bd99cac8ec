"""Pages, styles, scripts and recipes of all pipelines name none of them.

Those of one pipeline are in its own package; the chart in `deploy/` names each of them, see
`chart/test_kinds.py`.
"""

import re
from pathlib import Path

import pytest

from workers import catalogue

ROOT = Path(__file__).parents[2]
SHARED = (
    "workers/shared/gateway/pages/templates",
    "workers/shared/gateway/pages/static",
    "Makefile",
    ".ci/run",
)


def named_in_text(text: str) -> list[tuple[int, str]]:
    """Lines of a page, script or recipe that name a pipeline, and the name."""
    text = text.replace("lint-imports", "")
    pattern = re.compile(rf"\b({'|'.join(each.name for each in catalogue.PIPELINES)})\b")
    lines = enumerate(text.splitlines(), 1)
    return [
        (number, found)
        for number, line in lines
        if not line.lstrip().startswith(("#", "//", "{#"))
        for found in pattern.findall(line)
    ]


def test_pages_and_recipes_of_all_pipelines_name_none() -> None:
    roots = [ROOT / each for each in SHARED]
    files = [each for root in roots for each in (root, *root.rglob("*")) if each.is_file()]
    assert len(files) > len(SHARED)
    own = [each for each in files if "vendor" not in each.parts]
    assert {each: named for each in own if (named := named_in_text(each.read_text()))} == {}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("{% if run.pipeline == 'imports' %}", ["imports"]),
        ('<a href="/batches/{{ case }}">', ["batches"]),
        ("  .badge.jobs { color: red }", ["jobs"]),
        ("bench-spreadsheets: $(DEV_STAMP)", ["spreadsheets"]),
        ("    if (kind === `transfers`) show();", ["transfers"]),
        ("\t$(BIN)/lint-imports", []),
        ("# It compiles what it imports.", []),
        ('{% from "macros.html" import moment %}', []),
    ],
)
def test_a_name_in_a_page_or_recipe_is_found(line: str, found: list[str]) -> None:
    assert [name for _, name in named_in_text(line)] == found
