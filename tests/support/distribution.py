"""Which test files one process is given, where several share them."""

import functools
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).parents[2]
_SHARED = ("site: PagesSetup", "installation: Installation")
"""Parameters of tests whose fixtures start servers and processes for the whole session."""


@functools.cache
def scope_of(file: str) -> str:
    """What goes to one process: the file, or with it all others of `tests/e2e` with its fixture.

    Each process that has one of them starts everything, and keeps it to the end.
    """
    if not file.startswith("tests/e2e/"):
        return file
    source = (ROOT / file).read_text()
    return next((parameter for parameter in _SHARED if parameter in source), file)


class SharedFixtures(LoadFileScheduling):
    """Whole files for each process; those with an expensive fixture in common for the same one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(super()._split_scope(nodeid))
