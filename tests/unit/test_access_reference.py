"""The reference page of access is what its command writes."""

from pathlib import Path

from workers.shared.gateway.access import page

COMMITTED = Path(__file__).parents[2] / "docs" / "reference" / "access.md"


def test_the_committed_page_is_what_the_command_writes() -> None:
    said = "run `python -m workers.shared.gateway.access > docs/reference/access.md`"
    assert page() == COMMITTED.read_text(), said
