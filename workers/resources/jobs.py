"""What the `jobs` pipeline uses beyond the adapters that all pipelines share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from activities.jobs.api import JobResources, JobTypes
from activities.jobs.contexts import JobPorts
from activities.jobs.folders import StageFolders
from adapters.database import Database
from adapters.database.jobs.features import GeoPackageFeatures, PostgisFeatures
from adapters.database.jobs.store import SqlJobStore
from adapters.files.vectors.reader import VectorFiles
from adapters.ports import Blobs
from adapters.ports.catalogue import Catalogue, CataloguePage, CatalogueQuery
from adapters.ports.features import Features
from adapters.ports.vectors import Vectors
from domain.errors import RuleViolation
from workers.resources.blobs import open_blobs
from workers.settings.common import BlobSettings
from workers.settings.jobs import JobSettings


@dataclass(frozen=True)
class JobsOpened:
    """The tables of jobs, what tasks are given, and how many run at once."""

    store: SqlJobStore
    ports: JobPorts
    light_slots: int
    heavy_slots: int


def job_resources(
    settings: JobSettings,
    blob_settings: BlobSettings,
    blobs: Blobs,
    database: Database,
    scratch: Path,
    types: JobTypes | None = None,
    catalogue: Catalogue | None = None,
    more: Mapping[type, Any] | None = None,
) -> JobsOpened:
    """Wire the adapters of jobs.

    Args:
        settings: Of its workers.
        blob_settings: Where the containers of its data are.
        blobs: The container of documents; plans and results of stages lie there.
        database: Where records are kept.
        scratch: Folder for temporary files.
        types: Job types; None: those that are installed.
        catalogue: Of spatial data; None: there is none.
        more: Further ports of tasks, by protocol.
    """
    bronze, silver, gold = map(open_blobs, settings.of(blob_settings))
    store = SqlJobStore(database)
    resources = JobResources(
        bronze=bronze,
        silver=silver,
        gold=gold,
        catalogue=catalogue or NoCatalogue(),
        scratch=scratch,
        more={
            Vectors: VectorFiles(),
            Features: _features(database, silver, scratch),
            **(more or {}),
        },
    )
    return JobsOpened(
        store=store,
        ports=JobPorts(
            types=JobTypes.installed() if types is None else types,
            resources=resources,
            folders=StageFolders(blobs, scratch),
            store=store,
            result_bytes=settings.result_bytes,
        ),
        light_slots=settings.light_slots,
        heavy_slots=settings.heavy,
    )


def _features(database: Database, silver: Blobs, scratch: Path) -> Features:
    """Tables of features: in PostGIS, or embedded as GeoPackages."""
    if database.dialect == "postgresql":
        return PostgisFeatures(database)
    return GeoPackageFeatures(silver, scratch)


class NoCatalogue:
    """Stands where no catalogue of spatial data is set up; whatever is asked of it is refused."""

    async def put_collection(self, collection: Mapping[str, Any]) -> None:
        """Refused."""
        _refuse()

    async def put_items(self, collection: str, items: Sequence[Mapping[str, Any]]) -> None:
        """Refused."""
        _refuse()

    async def delete_item(self, collection: str, item: str) -> bool:
        """Refused."""
        _refuse()

    async def collections(self) -> Sequence[Mapping[str, Any]]:
        """Refused."""
        _refuse()

    async def collection(self, id: str) -> Mapping[str, Any] | None:
        """Refused."""
        _refuse()

    async def item(self, collection: str, id: str) -> Mapping[str, Any] | None:
        """Refused."""
        _refuse()

    async def search(self, query: CatalogueQuery) -> CataloguePage:
        """Refused."""
        _refuse()


def _refuse() -> NoReturn:
    raise RuleViolation("this worker has no catalogue of spatial data")
