"""Ways to notify people: webhook, mail, the log, or several of them."""
