"""What a GeoPackage consists of before it has a table.

Source: OGC 12-128r19, with the R-tree of its annex F.3.
"""

from typing import Final

from adapters.database.jobs.features.parquet import SRID
from contracts.jobs.vectors import ColumnType

_APPLICATION: Final = 0x47504B47
_VERSION: Final = 10400
TYPES: Final = {
    ColumnType.TEXT: "TEXT",
    ColumnType.INTEGER: "INTEGER",
    ColumnType.REAL: "DOUBLE",
    ColumnType.BOOLEAN: "BOOLEAN",
    ColumnType.DATE: "DATE",
    ColumnType.TIME: "TEXT",
    # Its DATETIME is one in UTC, which is not known here.
    ColumnType.TIMESTAMP: "TEXT",
    ColumnType.INSTANT: "DATETIME",
    ColumnType.BINARY: "BLOB",
}
_WGS84: Final = (
    'GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,'
    'AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,'
    'AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],'
    'AXIS["Latitude",NORTH],AXIS["Longitude",EAST],AUTHORITY["EPSG","4326"]]'
)
SCHEMA: Final = f"""
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
CREATE TABLE gpkg_spatial_ref_sys (srs_name TEXT NOT NULL, srs_id INTEGER PRIMARY KEY,
  organization TEXT NOT NULL, organization_coordsys_id INTEGER NOT NULL,
  definition TEXT NOT NULL, description TEXT);
INSERT INTO gpkg_spatial_ref_sys VALUES
  ('Undefined Cartesian SRS', -1, 'NONE', -1, 'undefined', NULL),
  ('Undefined geographic SRS', 0, 'NONE', 0, 'undefined', NULL),
  ('WGS 84 geodetic', {SRID}, 'EPSG', {SRID}, '{_WGS84}', NULL);
CREATE TABLE gpkg_contents (table_name TEXT NOT NULL PRIMARY KEY, data_type TEXT NOT NULL,
  identifier TEXT UNIQUE, description TEXT DEFAULT '',
  last_change DATETIME NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ','now')),
  min_x DOUBLE, min_y DOUBLE, max_x DOUBLE, max_y DOUBLE, srs_id INTEGER,
  CONSTRAINT fk_gc_r_srs_id FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys(srs_id));
CREATE TABLE gpkg_geometry_columns (table_name TEXT NOT NULL, column_name TEXT NOT NULL,
  geometry_type_name TEXT NOT NULL, srs_id INTEGER NOT NULL, z TINYINT NOT NULL,
  m TINYINT NOT NULL, CONSTRAINT pk_geom_cols PRIMARY KEY (table_name, column_name),
  CONSTRAINT uk_gc_table_name UNIQUE (table_name),
  CONSTRAINT fk_gc_tn FOREIGN KEY (table_name) REFERENCES gpkg_contents(table_name),
  CONSTRAINT fk_gc_srs FOREIGN KEY (srs_id) REFERENCES gpkg_spatial_ref_sys (srs_id));
CREATE TABLE gpkg_extensions (table_name TEXT, column_name TEXT, extension_name TEXT NOT NULL,
  definition TEXT NOT NULL, scope TEXT NOT NULL,
  CONSTRAINT ge_tce UNIQUE (table_name, column_name, extension_name));
CREATE TABLE docflow_loads (key TEXT PRIMARY KEY, report TEXT NOT NULL);
CREATE TABLE docflow_table (definition TEXT NOT NULL);
"""  # noqa: S608 - names are quoted
_BOX: Final = 'ST_MinX(NEW."geom"), ST_MaxX(NEW."geom"), ST_MinY(NEW."geom"), ST_MaxY(NEW."geom")'
_NEW_IS: Final = '(NEW."geom" NOTNULL AND NOT ST_IsEmpty(NEW."geom"))'
_NEW_IS_NOT: Final = '(NEW."geom" ISNULL OR ST_IsEmpty(NEW."geom"))'
_OLD_IS: Final = '(OLD."geom" NOTNULL AND NOT ST_IsEmpty(OLD."geom"))'
_OLD_IS_NOT: Final = '(OLD."geom" ISNULL OR ST_IsEmpty(OLD."geom"))'
TRIGGERS: Final = (
    (
        "insert",
        "AFTER INSERT ON {table}",
        _NEW_IS,
        f'INSERT OR REPLACE INTO {{tree}} VALUES (NEW."fid", {_BOX})',  # noqa: S608 - names are quoted
    ),
    (
        "update6",
        'AFTER UPDATE OF "geom" ON {table}',
        f'OLD."fid" = NEW."fid" AND {_NEW_IS} AND {_OLD_IS}',
        'UPDATE {tree} SET minx = ST_MinX(NEW."geom"), maxx = ST_MaxX(NEW."geom"),'
        ' miny = ST_MinY(NEW."geom"), maxy = ST_MaxY(NEW."geom") WHERE id = NEW."fid"',
    ),
    (
        "update7",
        'AFTER UPDATE OF "geom" ON {table}',
        f'OLD."fid" = NEW."fid" AND {_NEW_IS} AND {_OLD_IS_NOT}',
        f'INSERT INTO {{tree}} VALUES (NEW."fid", {_BOX})',  # noqa: S608 - names are quoted
    ),
    (
        "update2",
        'AFTER UPDATE OF "geom" ON {table}',
        f'OLD."fid" = NEW."fid" AND {_NEW_IS_NOT}',
        'DELETE FROM {tree} WHERE id = OLD."fid"',
    ),
    (
        "update5",
        "AFTER UPDATE ON {table}",
        f'OLD."fid" != NEW."fid" AND {_NEW_IS}',
        'DELETE FROM {tree} WHERE id = OLD."fid";'  # noqa: S608 - names are quoted
        f' INSERT OR REPLACE INTO {{tree}} VALUES (NEW."fid", {_BOX})',
    ),
    (
        "update4",
        "AFTER UPDATE ON {table}",
        f'OLD."fid" != NEW."fid" AND {_NEW_IS_NOT}',
        'DELETE FROM {tree} WHERE id IN (OLD."fid", NEW."fid")',
    ),
    (
        "delete",
        "AFTER DELETE ON {table}",
        'OLD."geom" NOT NULL',
        'DELETE FROM {tree} WHERE id = OLD."fid"',
    ),
)
