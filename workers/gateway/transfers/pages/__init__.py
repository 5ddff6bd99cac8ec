"""Pages of transfers."""
