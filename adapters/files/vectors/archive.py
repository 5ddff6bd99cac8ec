"""Zip archives of vector data: what belongs together is unpacked under names of our own."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from adapters.files import limits
from adapters.files.package import Package, open_package
from adapters.files.vectors.formats import GEODATABASE, MAPINFO
from adapters.files.vectors.layers import Refused, Source
from adapters.files.vectors.ogr_layers import open_layers
from adapters.files.vectors.oversights import check_geodatabase, check_mif, mapinfo_rows
from adapters.files.vectors.shapefile import DERIVED, PARTS, open_shapefile

_MAC: Final = "__MACOSX"
"""Folder in which macOS keeps a second file `._NAME` for each file, with what only it can use."""
_TAB: Final = ("tab", "dat", "map", "id", "ind")
_MIF: Final = ("mif", "mid")
_TABLE: Final = "gdbtable"
_SINGLE: Final = frozenset(
    {
        *("kml", "geojson", "json", "geojsonl", "geojsons", "ndjson", "topojson", "gml", "xml"),
        *("gpx", "gpkg", "fgb", "dxf", "csv", "tsv", "txt", "parquet", "geoparquet", "gz"),
    }
)
"""Suffixes of files that are read alone."""

Groups = dict[str, dict[str, str]]
"""Name of a layer to the names of its parts in the archive, by suffix."""


def open_archive(
    path: Path, folder: Path, encoding: str | None, open_one: Callable[[Path], Source]
) -> Source:
    """Unpack an archive and open what is in it.

    Args:
        path: The archive.
        folder: Takes the files; nothing is written elsewhere, whatever their names are.
        encoding: Of the attributes of Shapefiles, in place of what the files say.
        open_one: Opens the only file of an archive.

    Raises:
        Refused: It holds nothing that is read, or something is damaged.
        Unsure: Nothing says the encoding, and it matters.
        UnreadableDocument: The archive is damaged, hostile or too large.
    """
    with open_package(path, "archive") as package:
        names = list(_names(package))
        if package.unpacked > limits.VECTOR_BYTES:
            raise Refused(
                f"the archive unpacks to more than {limits.VECTOR_BYTES:,} bytes; send the data as"
                " GeoPackage"
            )
        own = [name for name in names if not _is_of_mac(name)]
        if groups := _groups(own, "shp"):
            used, source = _shapefiles(package, groups, folder, encoding)
        elif tables := [name for name in own if _suffix(name) == _TABLE]:
            used, source = _geodatabase(package, own, tables, folder)
        elif groups := {**_groups(own, "tab"), **_groups(own, "mif")}:
            used, source = _mapinfo(package, groups, folder)
        else:
            used, source = _single(package, own, folder, open_one)
    source.left_out += [f"file {name!r} is left out" for name in names if name not in used]
    return source


def _names(package: Package) -> Iterator[str]:
    """Names of all files.

    Raises:
        Refused: A name leads out of the archive, or is that of two parts.
    """
    seen: dict[str, str] = {}
    for name, _, _ in package.files():
        twin = seen.get(name.lower())
        seen[name.lower()] = name
        if twin is not None and _suffix(name) in (*PARTS, *_TAB, *_MIF):
            raise Refused(
                f"the archive holds {twin[:100]!r} and {name[:100]!r}, which are one name but for"
                " case; rename one of them"
            )
    for name in package.names():
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts or "\\" in name or ":" in name:
            raise Refused(
                f"the archive holds a file {name[:100]!r}, whose name leads out of it;"
                " nothing was unpacked"
            )
        if not name.endswith("/"):
            yield name


def _is_of_mac(name: str) -> bool:
    pure = PurePosixPath(name)
    return _MAC in pure.parts or pure.name.startswith("._")


def _suffix(name: str) -> str:
    return PurePosixPath(name.lower()).suffix[1:]


def _groups(names: list[str], main: str) -> Groups:
    """Files that are called as one with a suffix is."""
    stems: Groups = {}
    for name in names:
        stem, _, suffix = name.rpartition(".")
        stems.setdefault(stem.lower(), {})[suffix.lower()] = name
    found: Groups = {}
    for stem, parts in stems.items():
        if main in parts:
            display = PurePosixPath(parts[main]).stem
            found[display if display not in found else stem] = parts
    for name in names:
        if name.lower().endswith(f".{main}.xml") and (whole := stems.get(name.lower()[:-8])):
            whole["xml"] = name
    return found


def _unpacked(package: Package, files: Mapping[str, str], folder: Path) -> dict[str, Path]:
    """Write files of an archive.

    Args:
        package: The archive.
        files: What each is called here, to its name in the archive.
        folder: Takes them.
    """
    folder.mkdir()
    for own, name in files.items():
        with (folder / own).open("xb") as file:
            for block in package.stream(name, limits.VECTOR_BYTES):
                file.write(block)
    return {own: folder / own for own in files}


def _shapefiles(
    package: Package, groups: Groups, folder: Path, encoding: str | None
) -> tuple[set[str], Source]:
    source = Source("Shapefile", [])
    used: set[str] = set()
    for number, (name, group) in enumerate(groups.items(), start=1):
        used |= {each for suffix, each in group.items() if suffix in (*PARTS, *DERIVED)}
        parts = {part: group[part] for part in PARTS if part in group}
        files = _unpacked(package, parts, folder / str(number))
        source.layers.append(open_shapefile(name, files, encoding))
    return used, source


def _mapinfo(package: Package, groups: Groups, folder: Path) -> tuple[set[str], Source]:
    source = Source(MAPINFO.title, [])
    used: set[str] = set()
    for number, (name, group) in enumerate(groups.items(), start=1):
        parts = {f"layer.{part}": group[part] for part in (*_TAB, *_MIF) if part in group}
        used |= set(parts.values())
        files = _unpacked(package, parts, folder / str(number))
        main = files.get("layer.tab") or files["layer.mif"]
        rows = mapinfo_rows(name, files)
        if "layer.mif" in files and "layer.mid" in files:
            check_mif(name, files)
        for layer in open_layers(main, MAPINFO).layers:
            if rows and layer.features != rows:
                raise Refused(
                    f"layer {name!r} is cut off: it has {rows:,} rows and {layer.features:,} shapes"
                )
            layer.name = name
            source.layers.append(layer)
    return used, source


def _geodatabase(
    package: Package, names: list[str], tables: list[str], folder: Path
) -> tuple[set[str], Source]:
    parents = {str(PurePosixPath(name).parent) for name in tables}
    if len(parents) != 1:
        listed = ", ".join(map(repr, sorted(parents)))
        raise Refused(f"the archive holds several geodatabases ({listed}); send them one by one")
    [parent] = parents
    files = {
        PurePosixPath(name).name: name
        for name in names
        if str(PurePosixPath(name).parent) == parent
    }
    for path in _unpacked(package, files, folder / "data.gdb").values():
        check_geodatabase(path)
    return set(files.values()), open_layers(folder / "data.gdb", GEODATABASE)


def _single(
    package: Package, names: list[str], folder: Path, open_one: Callable[[Path], Source]
) -> tuple[set[str], Source]:
    found = [name for name in names if _suffix(name) in _SINGLE]
    places = [name for name in found if _suffix(name) == "kml"]
    if not found:
        raise Refused("the archive holds no vector data")
    if len(found) > 1 and not places:
        listed = ", ".join(map(repr, found[:5]))
        raise Refused(f"the archive holds several files of data ({listed}); send them one by one")
    source = Source("KMZ", [])
    # What a KMZ shows may lie in files that its first one links to.
    for number, name in enumerate(places or found, start=1):
        own = folder / f"single-{number}"
        one = open_one(_unpacked(package, {"content": name}, own)["content"])
        if not places:
            return {name}, one
        for layer in one.layers:
            layer.name = name.rpartition(".")[0] if len(places) > 1 else layer.name
        if any(layer.features for layer in one.layers) or len(places) == 1:
            source.layers += one.layers
        source.left_out += one.left_out
    return set(places), source
