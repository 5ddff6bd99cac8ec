"""What is scanned, what goes to quarantine, and what is as good as infected."""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from activities.transfers.archives import Scanning, ScanPorts
from adapters.ports.transfers import ScanVerdict
from tests.support.imports.activities import environment
from tests.support.memory.blobs import MemoryBlobs
from tests.support.transfers.actions import TRANSFER, Endpoints, step_of
from workflows.transfers.runs import ActionResult
from workflows.transfers.settings import NotScanned, Scan

CSV = b"stop;lat;lon\n" * 500


@pytest.fixture
def ends(tmp_path: Path) -> Endpoints:
    return Endpoints.at(tmp_path)


@dataclass
class ScriptedScanner:
    """Finds what the test names, by content."""

    verdicts: Mapping[bytes, ScanVerdict]
    signatures: datetime | None = field(default_factory=lambda: datetime.now(UTC))

    async def scan(self, chunks: AsyncIterator[bytes], size: int) -> ScanVerdict:
        content = b"".join([chunk async for chunk in chunks])
        assert len(content) == size
        return self.verdicts.get(content, ScanVerdict(clean=True, signatures=self.signatures))


EVIL = ScanVerdict(clean=False, infected="Win.Test")
LARGE = ScanVerdict(clean=False, reason="it is too large")


async def scanned(
    ends: Endpoints,
    scanner: ScriptedScanner,
    files: Mapping[str, bytes],
    *,
    undated: bool = False,
    **settings: Any,
) -> tuple[ActionResult, MemoryBlobs]:
    quarantine = MemoryBlobs()
    order = ends.order(Scan(**settings), {})
    order = order.model_copy(update={"files": await ends.staged(order, **files)})
    scanning = Scanning(ScanPorts(scanner, quarantine, ends.ports.staging, undated))
    # Done twice, as after a crash: nothing changes.
    await environment().run(scanning.scan, order)
    return await environment().run(scanning.scan, order), quarantine


async def test_clean_files_pass_and_their_receipt_names_the_signatures(ends: Endpoints) -> None:
    result, quarantine = await scanned(ends, ScriptedScanner({}), {"a.csv": CSV})
    assert (result.infected, result.remarks) == (None, ())
    assert await ends.contents(result.files) == {"a.csv": CSV}
    (line,) = (await step_of(ends, result)).files
    assert line.verdict == f"clean, signatures of {datetime.now(UTC):%Y-%m-%d}"
    assert not await quarantine.list("", 10)


async def test_nothing_is_scanned_where_no_file_was_found_and_none_is_required(
    ends: Endpoints,
) -> None:
    result, _ = await scanned(ends, ScriptedScanner({}), {})
    assert (result.files.files, result.infected) == (0, None)


async def test_an_infected_file_goes_to_quarantine_and_fails_the_run(ends: Endpoints) -> None:
    scanner = ScriptedScanner({b"evil": EVIL, b"worse": EVIL})
    files = {"a.csv": CSV, "b.exe": b"evil", "c.exe": b"worse"}
    result, quarantine = await scanned(ends, scanner, files)
    assert result.infected == "'b.exe': infected with Win.Test (and 1 more)"
    names = [ref.name for ref in await quarantine.list("quarantine/", 10)]
    stem = f"quarantine/{TRANSFER}/00"
    assert names == [f"{stem}-{n:05}.{end}" for n in (1, 2) for end in ("bin", "json")]
    kept = b"".join([piece async for piece in quarantine.read(names[0])])
    facts = json.loads(b"".join([piece async for piece in quarantine.read(names[1])]))
    assert (kept, facts["name"], facts["scanned"]) == (b"evil", "b.exe", "infected with Win.Test")
    verdicts = [line.verdict for line in (await step_of(ends, result)).files]
    assert verdicts[1:] == ["infected with Win.Test"] * 2


@pytest.mark.parametrize(
    ("scanner", "undated", "reason"),
    [
        (ScriptedScanner({CSV: LARGE}), False, "it is too large"),
        (ScriptedScanner({}, None), False, "the age of the signatures is not known"),
        (ScriptedScanner({}, datetime.now(UTC) - timedelta(days=8)), True, "more than 7 days old"),
    ],
)
async def test_what_was_not_scanned_is_as_good_as_infected_unless_the_route_says_otherwise(
    ends: Endpoints, scanner: ScriptedScanner, undated: bool, reason: str
) -> None:
    result, quarantine = await scanned(ends, scanner, {"a.csv": CSV}, undated=undated)
    assert result.infected is not None
    assert "not scanned" in result.infected
    assert reason in result.infected
    assert len(await quarantine.list("quarantine/", 10)) == 2
    allowed, quarantine = await scanned(
        ends, scanner, {"a.csv": CSV}, undated=undated, not_scanned=NotScanned.ALLOW
    )
    assert allowed.infected is None
    assert reason in allowed.remarks[0]
    assert not await quarantine.list("quarantine/", 10)


async def test_infected_is_infected_whatever_the_route_says(ends: Endpoints) -> None:
    scanner = ScriptedScanner({b"evil": EVIL})
    result, _ = await scanned(ends, scanner, {"a": b"evil"}, not_scanned=NotScanned.ALLOW)
    assert result.infected is not None
    undated, _ = await scanned(ends, ScriptedScanner({}, None), {"a": CSV}, undated=True)
    assert undated.infected is None
