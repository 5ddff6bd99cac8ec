"""Which pipelines a worker works on, and what a process says of its settings."""

from collections.abc import Mapping

import pytest

from workers.batches.register import BATCHES
from workers.shared.errors import SettingsError
from workers.shared.process import choose, read_settings, run_worker

TOPIC = {"DOCFLOW_BATCH_TOPIC_ARN": "arn:aws:sns:eu-central-1:1:t"}


def _missing(name: str) -> None:
    raise SettingsError(f"missing setting: {name}")


def _first(environment: Mapping[str, str]) -> None:
    _missing("FIRST")


def _second(environment: Mapping[str, str]) -> None:
    _missing("SECOND")


def test_a_worker_of_all_pipelines_leaves_out_those_without_settings() -> None:
    assert [pipeline.name for pipeline in choose(None, {})] == ["imports", "spreadsheets"]
    for without in ({}, {"DOCFLOW_BATCH_TOPIC_ARN": "  "}):
        assert BATCHES.left_out(without) == "DOCFLOW_BATCH_TOPIC_ARN is not set"


def test_a_worker_of_all_pipelines_works_on_those_with_settings() -> None:
    names = [pipeline.name for pipeline in choose(None, TOPIC)]
    assert names == ["imports", "spreadsheets", "batches"]
    assert BATCHES.left_out(TOPIC) is None


def test_a_pipeline_that_is_named_is_worked_on_whatever_its_settings() -> None:
    assert [pipeline.name for pipeline in choose(["batches"], {})] == ["batches"]


async def test_an_unknown_pipeline_is_named() -> None:
    with pytest.raises(SettingsError, match=r"unknown pipeline .'letters'.; known are"):
        await run_worker(["letters"], {})


def test_every_group_of_settings_says_what_is_wrong() -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings({}, [_first, _second, _first])
    assert str(refused.value) == "missing setting: FIRST\nmissing setting: SECOND"


def test_settings_are_read_once() -> None:
    calls: list[int] = []

    def reader(environment: Mapping[str, str]) -> int:
        calls.append(1)
        return len(calls)

    assert read_settings({}, [reader, reader]) == {reader: 1}
