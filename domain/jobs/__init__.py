"""Pure rules of staged jobs."""
