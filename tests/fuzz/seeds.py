"""Small sound files of every format that is read."""

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.support.files import hostile_documents, open_documents
from tests.support.files.compound_files import xls
from tests.support.imports.documents import workbook
from tests.support.jobs import rasters, vector_files
from tests.support.jobs.vector_formats import (
    ARC,
    COLUMNS,
    ESRI,
    FEATURE,
    GML,
    GPX,
    PLACE,
    TOPOLOGY,
    by_gdal,
    geo,
    gzipped,
    parquet,
    text,
)
from tests.support.transfers.archives import gzip_of, tar_of, zip_of

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
_ROWS: Final[Sequence[Sequence[str | float]]] = (
    ("Equipment No", "Description", "Rate"),
    ("CR-0100", "Crawler crane", 185.5),
    ("CR-0250", "König", 1310),
    ("CR-0300", "", 2),
)
_SQUARES: Final = (vector_files.SQUARE, vector_files.BOW_TIE, None)
Seeds = Callable[[Path], Sequence[bytes]]
"""Makes the seeds of a format; the folder may be used for that."""


def _file(name: str) -> bytes:
    return (HERE / "files" / name).read_bytes()


def _cases(*names: str) -> Seeds:
    return lambda _: [(ROOT / "tests/cases" / name).read_bytes() for name in names]


def _samples(*names: str) -> Seeds:
    return lambda _: [(ROOT / "samples" / name).read_bytes() for name in names]


def _of(*contents: bytes) -> Seeds:
    return lambda _: contents


def _xlsx(folder: Path) -> Sequence[bytes]:
    path = folder / "table.xlsx"
    workbook(path, {"Data": _ROWS, "More": [["a", None, 1.5]]}, merged=[(3, 0, 3, 1)])
    return [path.read_bytes()]


def _both(*all_seeds: Seeds) -> Seeds:
    return lambda folder: [each for seeds in all_seeds for each in seeds(folder)]


def _geojson(folder: Path) -> Sequence[bytes]:
    features = [(each, {"n": 1, "text": "ü"}) for each in _SQUARES]
    return [vector_files.geojson(folder / "seed.geojson", features).read_bytes()]


def _shapefile(folder: Path) -> Sequence[bytes]:
    fields = [(b"name", "C", 8, 0), (b"n", "N", 6, 2), (b"day", "D", 8, 0)]
    rows = [(b"\xfcber", b"1.50", b"20260101"), (b"b", b"2", b""), (b"", b"", b"20261301")]
    table = vector_files.dbf(fields, rows, language=0x57)
    return [vector_files.shapefile(folder / "seed.zip", _SQUARES, table).read_bytes()]


def _geopackage(folder: Path) -> Sequence[bytes]:
    columns = {"n": [1, 2, 3], "text": ["a", "ü", "c"]}
    return [vector_files.geopackage(folder / "seed.gpkg", _SQUARES, columns).read_bytes()]


def _written(write: Callable[[Path], Path]) -> Seeds:
    return lambda folder: [write(folder).read_bytes()]


def _zipped(name: str, seeds: Seeds) -> Seeds:
    return lambda folder: [zip_of({name: each}) for each in seeds(folder)]


def _raster(suffix: str, driver: str = "GTiff", **more: Any) -> Seeds:
    def made(folder: Path) -> Sequence[bytes]:
        pixels = rasters.values(1, 40, 50)
        path = rasters.write(folder / f"seed{suffix}", pixels, driver=driver, **more)
        return [path.read_bytes()]

    return made


def _heights(_: Path) -> Sequence[bytes]:
    return [gzip.compress(bytes(2 * 1201 * 1201), 1, mtime=0)]


def _docx(_: Path) -> Sequence[bytes]:
    main = hostile_documents.word_main("<w:p><w:r><w:t>words</w:t></w:r></w:p>")
    return [hostile_documents.word_with(main)]


def _pages(_: Path) -> Sequence[bytes]:
    return [hostile_documents.pdf_of_many_pages(3)]


def _packed_documents(folder: Path) -> Sequence[bytes]:
    names = ("page.html", "mail.eml", "text.rtf")
    return [zip_of({**{f"a/{name}": _file(name) for name in names}, "c.docx": _docx(folder)[0]})]


def _stored(_: Path) -> Sequence[bytes]:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("a.txt", b"words\n" * 20)
        archive.writestr("b/ü.bin", bytes(range(256)), zipfile.ZIP_DEFLATED)
    return [sink.getvalue()]


_FILES: Final = {"a.txt": b"words\n" * 20, "b/c.bin": bytes(range(256))}

TABLES: Final[Mapping[str, Seeds]] = {
    "csv": _both(
        _samples("equipment.csv"),
        _of("Equipment No;Description;Rate\r\nE-1;K\u00f6nig;1.310,5\r\n".encode("cp1252")),
    ),
    "tsv": _of("Equipment No\tDescription\tRate\nE-1\t\u00dcber\t2\n".encode("utf-16")),
    "xlsx": _xlsx,
    "xls": _of(xls(_ROWS)),
    "ods": _both(_of(open_documents.ods("Data", _ROWS)), _samples("equipment_hired.ods")),
}
SCHEDULES: Final[Mapping[str, Seeds]] = {
    "xer": _both(
        _cases("schedules/y03_external.xer", "schedules/y10_names.xer"),
        _samples("two-projects.xer"),
    ),
    "pmxml": _samples("tankfarm.xml"),
}
VECTORS: Final[Mapping[str, Seeds]] = {
    "geojson": _both(_geojson, _cases("geo/gj_float32_180.geojson")),
    "kml": _cases("geo/kml_track.kml", "geo/kml_multipolygon_element.kml"),
    "kmz": _zipped("doc.kml", _cases("geo/kml_track.kml")),
    "shapefile": _both(_shapefile, _cases("geo/tin.zip", "geo/dbf_utf8_ansi.zip")),
    "geopackage": _geopackage,
    "flatgeobuf": _written(by_gdal("FlatGeobuf", "fgb", count=20, **COLUMNS)),
    "gml": _both(
        _written(text(GML.format(encoding="UTF-8", shape=PLACE, more=""))),
        _written(text(GML.format(encoding="UTF-8", shape=ARC, more=""))),
    ),
    "gpx": _written(text(GPX)),
    "dxf": _written(by_gdal("DXF", "dxf", count=3)),
    "mapinfo": _written(by_gdal("MapInfo File", "mif", count=3, **COLUMNS)),
    "tab": _written(by_gdal("MapInfo File", "tab", count=3, **COLUMNS)),
    "geodatabase": _written(by_gdal("OpenFileGDB", "gdb", count=3, **COLUMNS)),
    "topojson": _written(text(json.dumps(TOPOLOGY))),
    "esri-json": _written(text(json.dumps(ESRI))),
    "geojson.gz": _written(gzipped(f"{FEATURE}\n{FEATURE}")),
    "geoparquet": _written(parquet(geo())),
    "csv": _written(text("id,zip,start,Longitude,Latitude\n1,01234,2024-01-02,9,48\n" * 3)),
}
RASTERS: Final[Mapping[str, Seeds]] = {
    "tif": _both(
        _raster(".tif"),
        _raster("-packed.tif", compress="deflate", tiled=True, blockxsize=16, blockysize=16),
        _raster("-old.tif", compress="lzw", nodata=7),
    ),
    "tif.zip": _zipped("seed.tif", _raster(".tif")),
    "tif.gz": lambda folder: [gzip.compress(_raster(".tif")(folder)[0], mtime=0)],
    "hgt.gz": _heights,
    "png": _raster(".png", "PNG"),
    "jpg": _raster(".jpg", "JPEG"),
    "jp2": _raster(".jp2", "JP2OpenJPEG"),
    "img": _raster(".img", "HFA"),
}
DOCUMENTS: Final[Mapping[str, Seeds]] = {
    "pdf": _both(_cases("documents/a-filled-form-is-read-with-its-notes-and-files.pdf"), _pages),
    "docx": _docx,
    "xlsx": _cases("documents/in-all-places-xlsx.xlsx"),
    "xlsb": _cases("documents/binary-workbook.xlsb"),
    "pptx": _cases("documents/files-of-other-programs-are-taken-out-of-their-wrapping-pptx.pptx"),
    "msg": _cases(
        "documents/a-message-with-its-text-as-rtf-alone-is-read.msg",
        "documents/an-attached-item-of-outlook-is-a-mail-with-its-files.msg",
    ),
    "eml": _both(_of(_file("mail.eml")), _cases("documents/c42-external-body.eml")),
    "emlx": _cases("documents/c18-apple.emlx"),
    "rtf": _of(_file("text.rtf")),
    "odt": _cases("documents/in-all-places-odt.odt"),
    "ods": _of(open_documents.ods("Data", _ROWS)),
    "doc": _cases("documents/in-all-places-doc.doc"),
    "xls": _of(xls(_ROWS)),
    "ppt": _cases("documents/files-in-old-presentations-are-taken-out-true.ppt"),
    "html": _of(_file("page.html")),
    "dat": _cases("documents/c20a-load-cp1252.dat"),
    "zip": _packed_documents,
}
ARCHIVES: Final[Mapping[str, Seeds]] = {
    "zip": _both(_of(zip_of(_FILES)), _stored),
    "tar": _of(tar_of(_FILES)),
    "gz": _of(gzip_of(b"words\n" * 50, "a.txt")),
    "tar.gz": _of(gzip_of(tar_of(_FILES))),
}
