"""Commands of transfers."""
