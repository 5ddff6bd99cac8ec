"""The environment of a hardened GDAL, and of the libraries beside it.

rasterio and pyogrio bring a GDAL each, which reads its configuration from the environment when it
is loaded. So both are imported in reading processes alone (`adapters.files.forks`), which are
started with this environment. Without it a virtual dataset that is named `.tif` reads any local
file, a name that begins `/vsicurl/` reaches into the network, and a hostile `.ovr` beside a file
deletes the file that it names.
"""

import os
from collections.abc import Mapping
from typing import Final

_SKIPPED: Final = (
    # They read what their file names: other files, hosts, databases.
    *("VRT", "OGR_VRT", "DERIVED", "GTI", "STACIT", "STACTA", "Rasterlite", "ADRG", "ECRGTOC"),
    *("WMS", "WMTS", "WCS", "WFS", "HTTP", "OAPIF", "PLMOSAIC", "PLSCENES", "EEDA", "EEDAI"),
    *("DAAS", "NGW", "Elastic", "AmigoCloud", "Carto", "CSW", "GMLAS", "MVT", "RPFTOC"),
    *("MySQL", "PostgreSQL", "PostGISRaster", "MSSQLSpatial", "ODBC", "PGeo", "TileDB", "Zarr"),
    *("SAFE", "SENTINEL2", "DIMAP", "TIL", "MRF", "KMLSUPEROVERLAY", "GNMFile", "GNMDatabase"),
)

ENVIRONMENT: Final[Mapping[str, str]] = {
    "GDAL_SKIP": ",".join(_SKIPPED),
    # No file beside the one that is opened is looked for or read.
    "GDAL_DISABLE_READDIR_ON_OPEN": "EMPTY_DIR",
    "GDAL_PAM_ENABLED": "NO",
    "GDAL_GEOREF_SOURCES": "INTERNAL",
    "GDAL_DRIVER_PATH": "disable",
    "GDAL_PYTHON_DRIVER_PATH": "",
    "GDAL_VRT_ENABLE_PYTHON": "NO",
    "GDAL_VRT_ENABLE_RAWRASTERBAND": "NO",
    "OGR_SQLITE_LOAD_EXTENSIONS": "NONE",
    "CPL_VSIL_CURL_ALLOWED_EXTENSIONS": ".none",
    "PROJ_NETWORK": "OFF",
    # What is cut off or damaged is an error, and no grey pixels.
    "GDAL_ERROR_ON_LIBJPEG_WARNING": "TRUE",
    # Memory and threads: side by side stand processes, not threads.
    "GDAL_CACHEMAX": "16",
    "GDAL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}

_OTHER_VECTORS: Final = (
    # They read nothing that `adapters.files.vectors` takes, or what has a reader of its own.
    *("PCIDSK", "PDS4", "VICAR", "PDF", "MBTiles", "OGCAPI", "GDALG", "LVBAG", "S57", "DGN"),
    *("LIBKML", "KML", "GeoJSON", "GeoJSONSeq", "OGR_GMT", "SQLite", "WAsP", "PGDUMP", "GeoRSS"),
    *("VFK", "OSM", "GPSBabel", "OGR_PDS", "EDIGEO", "Idrisi", "ODS", "XLSX", "Elasticsearch"),
    *("SXF", "Selafin", "JML", "VDV", "MapML", "GTFS", "PMTiles", "JSONFG", "MiraMonVector"),
    *("ADBC", "AVCBin", "AVCE00", "AIVector", "CSV"),
)
VECTORS: Final[Mapping[str, str]] = {
    **ENVIRONMENT,
    "GDAL_SKIP": ",".join((*_SKIPPED, *_OTHER_VECTORS)),
    # A GML file names a schema and other files, on any host.
    "GML_DOWNLOAD_SCHEMA": "NO",
    "GML_SKIP_RESOLVE_ELEMS": "ALL",
    # It says no types, and a guess would make 1234 of 01234.
    "GML_FIELDTYPES": "ALWAYS_STRING",
    "GPX_ELE_AS_25D": "YES",
}
"""Of processes that read vector data: no driver but those whose formats are read."""


class NotHardened(Exception):
    """This process was started without the environment above."""


def require(environment: Mapping[str, str] = ENVIRONMENT) -> None:
    """Check that the environment stands, as the first thing in a reading process.

    Args:
        environment: The one that it was to be started with.

    Raises:
        NotHardened: It does not.
    """
    missing = [name for name, value in environment.items() if os.environ.get(name) != value]
    if missing:
        raise NotHardened(f"GDAL is not hardened: {', '.join(missing)} differ")
