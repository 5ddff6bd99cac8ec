"""Reading vector data, in processes of their own, and writing GeoParquet."""
