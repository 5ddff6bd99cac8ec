"""States, turns, routes and partners of transfers."""
