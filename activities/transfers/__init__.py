"""Steps of transfers."""
