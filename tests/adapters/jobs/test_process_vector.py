"""The job type `process_vector`, stage by stage, over real files, stores and catalogues."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from arro3.io import read_parquet

from activities.jobs.api import InputNeeded, JobResources, StageContext, TaskContext
from activities.jobs.catalogue import Catalogue
from activities.jobs.geopackages import InstalledFeatures
from activities.jobs.ports import CatalogueQuery, Features
from activities.jobs.types.process_vector import ProcessVector
from adapters.database.engine import open_database
from adapters.files.vectors.reader import VectorFiles
from adapters.ports.spatial import Vectors
from tests.support.jobs.vector_files import BOW_TIE, SQUARE, geojson, geopackage
from tests.support.memory.blobs import MemoryBlobs
from workflows.jobs.records import InputIdentity, JsonObject, TaskStatus
from workflows.jobs.runs import FinishedTask, PlannedTask
from workflows.jobs.vectors import ProcessVectorParameters
from workflows.shared.errors import RuleViolation

pytestmark = pytest.mark.asyncio(loop_scope="module")

JOB = "a" * 64


@dataclass
class Runner:
    """Runs the stages of a job as its workflow does."""

    resources: JobResources
    folder: Path
    job_type: ProcessVector
    runs: int = 0

    async def put(self, path: Path, name: str) -> InputIdentity:
        """A file in bronze."""
        found = await self.resources.bronze.upload(path, name)
        return InputIdentity(uri=f"bronze://{name}", size=found.size, etag=found.etag)

    async def run(
        self,
        attempt: int = 1,
        job_id: str = JOB,
        identity: InputIdentity | None = None,
        organisation_id: int | None = None,
        **said: Any,
    ) -> JsonObject:
        """All stages; the result of the job."""
        parameters = ProcessVectorParameters.model_validate({"datetime": "2024-05-31", **said})
        inputs = () if identity is None else (identity,)
        results: dict[int, JsonObject] = {}
        done: list[FinishedTask] = []
        functions = self.job_type.task_functions
        for stage in self.job_type.definition.stages:

            async def previous(tasks: tuple[FinishedTask, ...]) -> AsyncIterator[FinishedTask]:
                for each in tasks:
                    yield each

            def context(tasks: tuple[FinishedTask, ...]) -> StageContext[ProcessVectorParameters]:
                return StageContext(
                    job_id,
                    attempt,
                    parameters,
                    inputs,
                    lambda: previous(tasks),
                    dict(results),
                    self.resources,
                )

            before = tuple(done)
            planned = [each async for each in self.job_type.plan(stage, context(before))]
            function = getattr(self.job_type, functions[stage.task_type])
            done = []
            for ordinal, task in enumerate(planned):
                self.runs += 1
                own = self.folder / str(self.runs)
                own.mkdir()
                finished = await function(
                    TaskContext(
                        job_id,
                        attempt,
                        stage.stage_number,
                        task.index,
                        parameters,
                        task.parameters,
                        inputs,
                        None,
                        dict(results),
                        self.resources,
                        partial(Path, own),
                        lambda _share, _text: None,
                        organisation_id,
                    )
                )
                done.append(_finished(task, ordinal, finished.result, finished.next_stage_params))
            results[stage.stage_number] = await self.job_type.aggregate(stage, context(tuple(done)))
        return await self.job_type.result(context(tuple(done)))


def _finished(task: PlannedTask, ordinal: int, result: Any, following: Any) -> FinishedTask:
    return FinishedTask(
        index=task.index,
        ordinal=ordinal,
        status=TaskStatus.COMPLETED,
        parameters=task.parameters,
        result=json.loads(json.dumps(result)),
        next_stage_params=json.loads(json.dumps(following)),
    )


@pytest.fixture(params=["database_url", pytest.param("postgis_url", marks=pytest.mark.postgis)])
def store_url(request: pytest.FixtureRequest) -> str:
    """URL of a database without PostGIS, and of one with it."""
    return request.getfixturevalue(request.param)


@pytest_asyncio.fixture(loop_scope="module")
async def runner(store_url: str, files: VectorFiles, tmp_path: Path) -> AsyncGenerator[Runner]:
    """Over GeoPackages, and over PostGIS."""
    silver = MemoryBlobs()
    async with open_database(store_url) as database:
        features = InstalledFeatures(database, silver, tmp_path)
        resources = JobResources(
            bronze=MemoryBlobs(),
            silver=silver,
            gold=MemoryBlobs(),
            catalogue=Catalogue(database),
            scratch=tmp_path,
            more={Vectors: files, Features: features},
        )
        folder = tmp_path / "tasks"
        folder.mkdir()
        yield Runner(resources, folder, ProcessVector())


async def test_a_file_becomes_tables_exports_and_items(
    runner: Runner, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path = geopackage(tmp_path / "a.gpkg", [SQUARE, None], {"n": [1, 2]}, layer="one")
    geopackage(path, ["POINT (9 48)"], {"n": [3]}, layer="two")
    await runner.put(path, "in/Town.gpkg")
    result = await runner.run(source="in/Town.gpkg")
    assert [each["table"] for each in result["layers"]] == ["town_one", "town_two"]
    assert result["layers"][0]["notes"] == ["1 features have no geometry; they are kept"]
    found = await runner.resources.catalogue.search(
        CatalogueQuery(bbox=(8.5, 47.5, 9.5, 48.5), collections=["vectors"])
    )
    items = {str(item["id"]): item for item in found.items}
    assert items.keys() == {"town_one", "town_two"}
    item = items["town_one"]
    assert item["properties"]["table:row_count"] == 2
    assert item["properties"]["start_datetime"] == "2024-05-31T00:00:00Z"
    is_table = item["assets"]["table"]["href"] == "postgresql:geo.town_one"
    assert is_table == ("postgis_url" in request.node.callspec.id)
    asset = item["assets"]["geoparquet"]
    export = tmp_path / "export.parquet"
    await runner.resources.gold.download(asset["href"].removeprefix("gold://"), export)
    assert asset["file:size"] == export.stat().st_size
    reader = read_parquet(export)
    names = [field.name for field in reader.schema]
    assert names == ["fid", "n", "geometry", "bbox"]
    assert [value for batch in reader for value in batch["n"].to_pylist()] == [1, 2]


async def test_a_mode_goes_by_what_is_there(runner: Runner, tmp_path: Path) -> None:
    await runner.put(geojson(tmp_path / "a", [(SQUARE, {"k": "a"})]), "a.geojson")
    await runner.run(source="a.geojson")
    again = await runner.run(source="a.geojson", attempt=2)
    assert again["layers"][0]["total"] == 1
    with pytest.raises(RuleViolation, match="exists"):
        await runner.run(source="a.geojson", job_id="b" * 64)
    result = await runner.run(source="a.geojson", job_id="c" * 64, mode="upsert", key=["k"])
    assert (result["layers"][0]["updated"], result["layers"][0]["total"]) == (1, 1)
    for mode in ("create", "replace", "append"):
        with pytest.raises(RuleViolation, match="is not of this organisation; use another dataset"):
            await runner.run(source="a.geojson", job_id="d" * 64, mode=mode, organisation_id=2)


async def test_too_much_that_is_rejected_loads_nothing(runner: Runner, tmp_path: Path) -> None:
    await runner.put(geojson(tmp_path / "a", [(SQUARE, {}), (BOW_TIE, {})]), "a.geojson")
    with pytest.raises(InputNeeded, match="1 of 2 features were rejected") as caught:
        await runner.run(source="a.geojson")
    assert caught.value.parameter == "max_rejected_share"
    features: Features = runner.resources.port(Features)
    assert await features.table("a") is None
    result = await runner.run(source="a.geojson", max_rejected_share=0.5)
    assert (result["layers"][0]["rejected"], result["layers"][0]["total"]) == (1, 1)


async def test_the_time_is_asked_for_before_anything_is_read(runner: Runner) -> None:
    with pytest.raises(InputNeeded) as caught:
        await runner.run(source="nosuch.gpkg", datetime=None)
    assert caught.value.parameter == "datetime"
    with pytest.raises(InputNeeded, match="is not a time") as caught:
        await runner.run(source="nosuch.gpkg", datetime="2024-13-40")
    assert caught.value.parameter == "datetime"


async def test_a_question_of_the_reader_is_asked(runner: Runner, tmp_path: Path) -> None:
    path = geojson(tmp_path / "a", [(SQUARE, {})], crs=None)
    await runner.put(path, "a_20240531.geojson")
    with pytest.raises(InputNeeded, match="coordinate reference system") as caught:
        await runner.run(source="a_20240531.geojson", datetime=None, datetime_pattern="compact")
    assert caught.value.parameter == "source_crs"


async def test_a_file_that_was_replaced_is_refused(runner: Runner, tmp_path: Path) -> None:
    identity = await runner.put(geojson(tmp_path / "a", [(SQUARE, {})]), "a.geojson")
    await runner.put(geojson(tmp_path / "b", [(SQUARE, {}), (SQUARE, {})]), "a.geojson")
    with pytest.raises(RuleViolation, match="was replaced"):
        await runner.run(source="a.geojson", identity=identity)


async def test_a_table_without_geometries_is_no_item_and_is_reported(
    runner: Runner, tmp_path: Path
) -> None:
    await runner.put(geojson(tmp_path / "a", [(None, {"a": 1})]), "a.geojson")
    result = await runner.run(source="a.geojson")
    assert "not in the catalogue" in result["layers"][0]["notes"][-1]


async def test_a_file_without_features_empties_a_table_and_takes_its_item_away(
    runner: Runner, tmp_path: Path
) -> None:
    catalogue, features = runner.resources.catalogue, runner.resources.port(Features)
    await runner.put(geojson(tmp_path / "a", [(SQUARE, {})]), "a.geojson")
    await runner.run(source="a.geojson")
    assert await catalogue.item("vectors", "a") is not None
    await runner.put(geojson(tmp_path / "b", []), "b.geojson")
    given = {"dataset": "a", "mode": "replace", "job_id": "b" * 64}
    result = await runner.run(source="b.geojson", **given)
    stored = await features.table("a")
    assert stored is not None and stored.rows == 0
    assert "not in the catalogue" in result["layers"][0]["notes"][-1]
    assert await catalogue.item("vectors", "a") is None


async def test_exports_are_geoparquet_with_a_covering(runner: Runner, tmp_path: Path) -> None:
    features = [(SQUARE, {"bbox": 1}), (None, {"bbox": 2}), ("POLYGON EMPTY", {"bbox": 3})]
    await runner.put(geojson(tmp_path / "a", features), "a.geojson")
    result = await runner.run(source="a.geojson")
    path = tmp_path / "x.parquet"
    name = result["layers"][0]["export"].removeprefix("gold://")
    await runner.resources.gold.download(name, path)
    reader = read_parquet(path)
    geo = json.loads(reader.schema.metadata[b"geo"])
    column = geo["columns"]["geometry"]
    assert (geo["version"], geo["primary_column"]) == ("1.1.0", "geometry")
    assert column["geometry_types"] == ["Polygon"] and column["bbox"] == [9, 48, 10, 49]
    assert column["covering"]["bbox"]["xmin"] == ["bbox", "xmin"]
    (batch,) = list(reader)
    assert batch["bbox"].to_pylist() == [
        {"xmin": 9.0, "ymin": 48.0, "xmax": 10.0, "ymax": 49.0},
        None,
        None,
    ]
    assert batch["bbox_"].to_pylist() == [1, 2, 3]
