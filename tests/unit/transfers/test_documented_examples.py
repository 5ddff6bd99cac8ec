"""What the documentation gives as examples is accepted as it stands."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from activities.transfers.cloud_events import read_event
from workers.transfers.settings import WATCHES, clocks_of
from workflows.transfers.job_settings import plan_of, read_settings
from workflows.transfers.partners import Partner, check_record

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_job_takes_the_event() -> None:
    event, settings, *_ = blocks("transfers.md", "json")
    found = read_settings(settings)
    plan = plan_of(found.jobs.jobs[0], read_event(event, datetime.now(UTC)), None, found.unused)
    assert plan.names[0]["path"] == "in/orders.csv" and plan.remarks == ()


def test_the_record_is_that_of_a_partner() -> None:
    records = blocks("transfers-places.md", "json")
    for record in records:
        partner = Partner.model_validate({"name": "acme", **json.loads(record)})
        check_record(partner)
        assert set(json.loads(record)) <= set(Partner.model_fields)
    assert len(records) == 1


def test_the_watches_are_declared(tmp_path: Path) -> None:
    file = tmp_path / "watches.yaml"
    file.write_text(blocks("transfers-watches.md", "yaml")[0])
    clocks = clocks_of({WATCHES: str(file)})
    assert clocks is not None
    assert (list(clocks.watches), list(clocks.expected)) == (["acme-orders"], ["acme-morning"])
