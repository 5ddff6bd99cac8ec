"""Names in job settings: what they become, and what they refuse."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.chaos import examples
from workflows.shared.errors import RuleViolation
from workflows.transfers.events import FileNotice
from workflows.transfers.paths import literal
from workflows.transfers.settings import (
    CallHttp,
    FireEvent,
    Kind,
    ReadFile,
    TemplateContext,
    WriteFile,
    check_path,
    fill_name,
    resolve,
    resolved_templates,
    resolved_text,
)


def facts(
    zone: str = "UTC", time: str = "2026-03-29T00:30:00+00:00", **data: Any
) -> TemplateContext:
    event = FileNotice(
        id="e-1",
        source="TMS.Route",
        type="Succeeded",
        subject="File Upload",
        account_id="TMS001",
        time=datetime.fromisoformat(time).astimezone(UTC),
        data=data,
    )
    return TemplateContext(event, zone, "jobs", "orders")


@pytest.mark.parametrize(
    ("template", "becomes"),
    [
        ("in/{accountId}/{data.path}", "in/TMS001/2026/a.csv"),
        ("{source}-{type}-{queue}-{job}", "TMS.Route-Succeeded-jobs-orders"),
        ("{data.order.number}", "17"),
        ("{data.whole}", "true"),
        ("{name}-{stem}{suffix}", "{name}-{stem}{suffix}"),
        ("{{literal}}", "{{literal}}"),
        ("{data.braces}", "{{x}}"),
    ],
)
def test_parts_of_the_event_are_resolved_and_those_of_files_stay(
    template: str, becomes: str
) -> None:
    known = facts(path="2026/a.csv", order={"number": 17}, whole=True, braces="{x}")
    assert resolve(template, known) == becomes


@pytest.mark.parametrize(
    ("hour", "becomes"),
    [("00:30", "0230+0200 24 0230+0200"), ("01:30", "0230+0100 24 0230+0200")],
)
def test_each_of_two_equal_hours_has_its_own_offset(hour: str, becomes: str) -> None:
    known = facts("Europe/Berlin", f"2026-10-25T{hour}:00+00:00")
    assert resolve("{time:%H%M%z} {yesterday:%d %H%M%z}", known) == becomes


@pytest.mark.parametrize(
    ("zone", "template", "becomes"),
    [
        ("UTC", "{time:%Y%m%d-%H%M}", "20260329-0030"),
        ("UTC", "{time}", "20260329"),
        # An hour later the clocks go forward there.
        ("Europe/Berlin", "{time:%d %H:%M}", "29 01:30"),
        ("Europe/Berlin", "{yesterday:%Y-%m-%d}", "2026-03-28"),
        ("America/Los_Angeles", "{time:%Y%m%d}", "20260328"),
        ("Pacific/Kiritimati", "{tomorrow:%Y%m%d}", "20260330"),
    ],
)
def test_dates_are_those_of_the_event_in_the_zone_of_the_job(
    zone: str, template: str, becomes: str
) -> None:
    assert resolve(template, facts(zone)) == becomes


def test_the_day_before_the_clocks_change_has_the_same_hour() -> None:
    known = facts("Europe/Berlin", "2026-03-29T08:00:00+00:00")
    assert resolve("{time:%d %H}/{yesterday:%d %H}", known) == "29 10/28 10"


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{nme}", "is not known; known are name, stem"),
        ("{data.missing}", "no text or number data.missing"),
        ("{data.order}", "no text or number data.order"),
        ("{data.empty}", "no text or number data.empty"),
        ("{time:%Q}", "%Q is not a directive"),
        ("{time:%}", "is not a directive"),
        ("{accountId:%d}", "only time, yesterday and tomorrow"),
        ("{name", "has no other"),
        ("name}", "has no other"),
        ("{data.line}", "control character"),
    ],
)
def test_what_cannot_be_resolved_is_reported(template: str, said: str) -> None:
    with pytest.raises(RuleViolation, match=said):
        resolve(template, facts(order={"a": 1}, empty="", line="a\nb"))


def test_a_zone_that_does_not_exist_is_reported() -> None:
    for zone in ("Mars/Olympus", "../../etc/passwd", "/etc/localtime", ""):
        with pytest.raises(RuleViolation, match="no time zone"):
            resolve("{time}", facts(zone))


@pytest.mark.parametrize(
    "value",
    ["..", "../x", "a/../../b", "a/./b", "/../x", "a//b", "a\\..\\b", "a\0b"],
)
def test_a_value_of_the_event_never_leads_out_of_its_folder(value: str) -> None:
    for kind in (Kind.PATH, Kind.PATTERN):
        with pytest.raises(RuleViolation):
            resolve("in/{data.x}/a", facts(x=value), kind)


@pytest.mark.parametrize("name", ["*", "a?.csv", "odd [1].csv", "[[]*?]", "{name}.csv", "a}{b"])
def test_wildcards_and_braces_of_the_event_stand_for_themselves(name: str) -> None:
    pattern = resolved_text(resolve("in/{data.x}", facts(x=name), Kind.PATTERN))
    assert literal(pattern) == f"in/{name}"
    assert literal(resolved_text(resolve("in/*/{data.x}", facts(x=name), Kind.PATTERN))) is None
    assert fill_name(resolve("out/{data.x}", facts(x=name), Kind.PATH), "f") == f"out/{name}"


def test_a_path_that_is_read_cannot_name_the_file() -> None:
    with pytest.raises(RuleViolation, match="not known before a file is read"):
        resolve("in/{name}", facts(), Kind.PATTERN)


def test_a_pattern_may_stand_in_the_settings() -> None:
    assert resolve("/in/{accountId}/*.csv", facts(), Kind.PATH) == "in/TMS001/*.csv"


def test_a_value_in_an_address_is_quoted() -> None:
    known = facts(id="a/b?c=1&d")
    assert resolve("/orders/{data.id}?x=1", known, Kind.URL) == "/orders/a%2Fb%3Fc%3D1%26d?x=1"
    with pytest.raises(RuleViolation, match="another folder"):
        resolve("/orders/{data.id}", facts(id=".."), Kind.URL)


@pytest.mark.parametrize(
    ("resolved", "name", "becomes"),
    [
        ("out/{name}", "a.csv", "out/a.csv"),
        ("out/{stem}-1{suffix}", "a.tar.gz", "out/a.tar-1.gz"),
        ("{stem}{suffix}", "folder/a.csv", "folder/a.csv"),
        ("{stem}|{suffix}", "README", "README|"),
        ("{stem}|{suffix}", ".profile", ".profile|"),
        ("{{name}}", "a.csv", "{name}"),
        ("{{{{x}}}}", "a.csv", "{{x}}"),
    ],
)
def test_a_name_is_filled_in(resolved: str, name: str, becomes: str) -> None:
    assert fill_name(resolved, name) == becomes


def test_all_names_of_an_action_are_resolved() -> None:
    read = ReadFile(partner="acme", path="in/{data.f}", move_to="done/{time}/{name}")
    assert resolved_templates(read, facts(f="a.csv")) == {
        "path": "in/a.csv",
        "move_to": "done/20260329/{name}",
    }
    fire = FireEvent(source="docflow", subject="{subject}", data={"file": "{name}"})
    assert resolved_templates(fire, facts())["data.file"] == "{name}"
    call = CallHttp(partner="acme", path="/{accountId}", headers={"X-Job": "{job}"})
    assert resolved_templates(call, facts()) == {"path": "/TMS001", "headers.X-Job": "orders"}


def test_the_field_of_a_wrong_name_is_reported() -> None:
    with pytest.raises(RuleViolation, match=r"WriteFile, path: \{nme\}"):
        resolved_templates(WriteFile(partner="acme", path="{nme}"), facts())


@given(st.text(max_size=40))
@settings(max_examples=examples(200))
def test_whatever_a_value_is_the_path_stays_in_its_folder(value: str) -> None:
    try:
        resolved = resolve("in/{data.x}/{name}", facts(x=value), Kind.PATH)
    except RuleViolation:
        return
    path = fill_name(resolved, "a.csv")
    check_path(path)
    assert path.startswith("in/") and path.endswith("/a.csv")
    assert path == f"in/{value}/a.csv"
