"""Tables of features, in PostGIS and in GeoPackages; both are `Features`."""

from adapters.database.jobs.features.geopackage import GeoPackageFeatures
from adapters.database.jobs.features.postgis import PostgisFeatures

__all__ = ["GeoPackageFeatures", "PostgisFeatures"]
