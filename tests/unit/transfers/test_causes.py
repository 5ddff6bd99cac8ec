"""Reasons of one cause are the same without the names of files."""

import pytest

from tests.support.transfers.events import FIRE, READ, SCAN, WRITE, a_job
from workflows.shared.notifications import cause_key, failure_fingerprint
from workflows.transfers.job_settings import PLACE, partner_of, place_of
from workflows.transfers.paths import printable
from workflows.transfers.settings import SettingsJob

NAMES = ["a.csv", "it's.csv", '"quoted".csv', "back\\slash", "Größe 100%.csv", "x" * 255, "'", ""]


def test_names_of_files_make_no_difference() -> None:
    said = {
        failure_fingerprint(f"acme refuses {printable(name)}: it answered 403") for name in NAMES
    }
    assert said == {"acme refuses …: it answered 403"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("acme refuses 'a': it answered 403", "acme refuses 'a': it answered 401"),
        ("acme refuses 'a': it answered 403", "other refuses 'a': it answered 403"),
        # An apostrophe within a word quotes nothing.
        ("the partner's disk is full, and it's so", "the partner's key is old, and it's so"),
    ],
)
def test_other_partners_and_failures_are_other_causes(one: str, other: str) -> None:
    assert failure_fingerprint(one) != failure_fingerprint(other)
    assert cause_key("jobs", one) != cause_key("jobs", other)


def test_answers_of_queues_are_told_apart() -> None:
    assert cause_key("jobs", "refused") != cause_key("event", "refused")
    assert cause_key("jobs", "'a': refused") == cause_key("jobs", "'b': refused")


def actions(*given: dict[str, object]) -> SettingsJob:
    return a_job(*given)


def test_places_name_partner_and_path_and_nothing_secret() -> None:
    call = {"Action": "CallHttp", "Partner": "portal", "Path": "/hook?sig=planted", "Method": "PUT"}
    pack = {"Action": "Compress", "Format": "zip", "Password": "env:PLANTED"}
    encrypt = {"Action": "Encrypt", "Partner": "acme"}
    found = actions(READ, SCAN, WRITE, FIRE, call, pack, encrypt).actions.list
    names = [{"path": "in/a.csv"}, {}, {"path": "x" * 300}, {}, {"path": "/hook?sig=planted"}]
    said = [
        (partner_of(each), place_of(each, resolved))
        for each, resolved in zip(found, [*names, {}, {}], strict=True)
    ]
    assert said == [
        ("acme", "in/a.csv"),
        (None, None),
        ("store", f"{'x' * (PLACE - 3)}..."),
        (None, "the routes"),
        ("portal", "PUT /hook"),
        (None, "zip"),
        ("acme", None),
    ]
