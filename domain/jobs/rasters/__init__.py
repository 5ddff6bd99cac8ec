"""Pure rules of rasters."""
