"""Tables of transfers in memory, for tests."""
