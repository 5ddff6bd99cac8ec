"""Pure rules of transfers."""
