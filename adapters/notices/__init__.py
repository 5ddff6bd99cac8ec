"""Ways to notify people: webhook, mail, the log."""
