"""The sample tables hold what their README says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from activities.imports.rows import RowImports
from activities.imports.tables import own_tables
from tests.support.imports.activities import ActivityPorts, environment, message_of, work_of
from workflows.imports.runs import Counts

SAMPLES = Path(__file__).parents[3] / "samples"
ROW = re.compile(r"^\| `(.+?)` \| (\w+) \| (\d+) \| (\d+) \|", re.MULTILINE)
LISTED = ROW.findall((SAMPLES / "README.md").read_text(encoding="utf-8"))
TABLE_FILES = [
    row for row in LISTED if row[1] in {str(document_type) for document_type in own_tables()}
]


def test_every_table_type_has_a_sample() -> None:
    assert {row[1] for row in TABLE_FILES} == {str(document_type) for document_type in own_tables()}


@pytest.mark.parametrize(("name", "document_type", "created", "rejected"), TABLE_FILES)
async def test_counts(
    tmp_path: Path, name: str, document_type: str, created: str, rejected: str
) -> None:
    ports = ActivityPorts(tmp_path)
    await ports.put("in/file", (SAMPLES / name).read_bytes())
    message = message_of(document_type, blob_name="in/file", filename=name, service_id="S1")
    activities = RowImports(ports.store, ports.blobs, ports.documents, ports.reports, ports.scratch)
    outcome = await environment().run(activities.load_rows, work_of(message))
    assert outcome.counts == Counts(created=int(created), rejected=int(rejected))


async def test_umlauts_of_an_old_code_page_arrive(tmp_path: Path) -> None:
    ports = ActivityPorts(tmp_path)
    await ports.put("in/file", (SAMPLES / "crew_members_cp1252.csv").read_bytes())
    message = message_of("crew_member", blob_name="in/file")
    activities = RowImports(ports.store, ports.blobs, ports.documents, ports.reports, ports.scratch)
    await environment().run(activities.load_rows, work_of(message))
    names = {row["name"] for row in ports.store.tables["crew_members"].values()}
    assert {"Jürgen Müller", "Björn Groß", "Zoë Öztürk", "André Lefèvre"} <= names


def test_workbooks_are_what_their_script_writes(tmp_path: Path) -> None:
    script = tmp_path / "make_tables.py"
    script.write_bytes((SAMPLES / "make_tables.py").read_bytes())
    subprocess.run([sys.executable, str(script)], check=True)
    written = sorted(path for path in tmp_path.iterdir() if path != script)
    assert len(written) == 6
    for path in written:
        assert path.read_bytes() == (SAMPLES / path.name).read_bytes()
