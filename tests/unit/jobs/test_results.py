"""Results of many datasets and layers stay within the bound of an aggregated result."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest

from activities.jobs.api import JobResources, JobType, StageContext
from activities.jobs.completion import RESULT_BYTES
from activities.jobs.types.process_raster import ProcessRaster
from activities.jobs.types.process_vector import ProcessVector
from workflows.jobs.progress import MOST_POSITIONS, fitting, thinned
from workflows.jobs.records import JobOutputs, JsonObject, TaskStatus
from workflows.jobs.runs import FinishedTask

NAME = "f" * 64 + "/1/4/0/scene.tif"
RING = [[number / 1_000, 48.1234567] for number in range(5_000)]
COAST: JsonObject = {"type": "Polygon", "coordinates": [[*RING, RING[0]]]}


def dataset(number: int) -> JsonObject:
    return {
        "item": f"scene_{number}",
        "collection": "rasters",
        "items": 1,
        "source": f"uploads/{'e' * 64}/scene_{number}.tif",
        "notes": ["x" * 900] * 20,
        "resampling": "bilinear",
        "asset": NAME,
        "preview": NAME,
        "size": 10**12,
        "footprint": COAST,
    }


def layer(number: int) -> JsonObject:
    return {
        "layer": f"layer {number}",
        "table": f"table_{number}",
        "features": 10,
        "rejected": 1,
        "notes": ["x" * 900] * 10,
        "export": f"gold://vectors/table_{number}/{'f' * 64}/1.parquet",
        "export_bytes": 10**12,
        "footprint": {"type": "Point", "coordinates": [9.1234567, 48.1234567]},
    }


async def aggregated(job_type: JobType[Any], stage: int, results: Sequence[JsonObject]) -> Any:
    async def previous() -> AsyncIterator[FinishedTask]:
        for number, result in enumerate(results):
            yield FinishedTask(
                index=str(number), ordinal=number, status=TaskStatus.COMPLETED, result=result
            )

    context: StageContext[Any] = StageContext(
        "f" * 64, 1, cast(Any, None), (), previous, {}, cast(JobResources, None)
    )
    found = await job_type.aggregate(job_type.definition.stage(stage), context)
    assert len(json.dumps(found).encode()) <= RESULT_BYTES
    return found


@pytest.mark.parametrize("datasets", [1, 100, 1_000])
async def test_datasets_of_any_number_and_outline_are_listed_as_far_as_they_fit(
    datasets: int,
) -> None:
    found = await aggregated(ProcessRaster(), 4, [dataset(number) for number in range(datasets)])
    assert found["datasets"] == datasets == len(found["items"]) + found["more_items"]
    assert found["items"]
    shown = JobOutputs.of(found)
    assert len(shown.files) == min(datasets, 100)
    assert (shown.footprint is not None) == (datasets == 1)
    assert shown.notes


async def test_layers_of_any_number_are_listed_as_far_as_they_fit() -> None:
    job_type = ProcessVector()
    found = await aggregated(job_type, 3, [layer(number) for number in range(200)])
    assert found["layers"] and len(found["layers"]) + found["more_layers"] == 200
    loaded = await aggregated(
        job_type, 2, [{"inserted": 5, "updated": 2}, {"inserted": 1, "updated": 0}]
    )
    assert loaded["rows"] == 8
    context: StageContext[Any] = StageContext(
        "f" * 64, 1, cast(Any, None), (), cast(Any, None), {3: found}, cast(JobResources, None)
    )
    shown = JobOutputs.of(await job_type.result(context))
    assert len(shown.files) == len(found["layers"])
    assert shown.notes[0] == "table_0: 1 features were rejected"


def test_notes_are_cut_and_counted() -> None:
    assert JobOutputs.shown(["a", "b"]) == ("a", "b")
    many = JobOutputs.shown(["x" * 1_000] * 100)
    assert many[-1] == "and 61 more" and len(many) == 40
    assert JobOutputs(notes=many).notes == many


def test_results_that_fit_are_the_first() -> None:
    assert fitting([{"a": 1}, {"b": "x" * 50}, {"c": 1}], 30) == [{"a": 1}]


def test_an_outline_keeps_its_ends_and_small_rings() -> None:
    island = [[0, 0], [1, 0], [1, 1], [0, 0]]
    thin = thinned({"type": "MultiPolygon", "coordinates": [COAST["coordinates"], [island]]})
    assert thin is not None
    (outline,), (small,) = thin["coordinates"]
    assert len(outline) <= MOST_POSITIONS + 2 and outline[0] == outline[-1] == RING[0]
    assert small == island
    assert thinned(COAST, 10_000) == COAST
    assert thinned(None) is None
