"""Rules of `transfers`, without network, clock or disk."""
