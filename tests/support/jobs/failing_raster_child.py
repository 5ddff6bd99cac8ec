"""The process that works on rasters, with a fault of its own."""

from pathlib import Path

from adapters.files import forks, gdal
from adapters.files.rasters import child
from workflows.jobs.rasters import RasterInfo


def _inspect(path: Path, subdataset: int | None, name: str) -> RasterInfo:
    raise KeyError(f"no band of {name}")


if __name__ == "__main__":
    gdal.require()
    child.inspect = _inspect
    forks.serve(child._handle)  # pyright: ignore[reportPrivateUsage]
