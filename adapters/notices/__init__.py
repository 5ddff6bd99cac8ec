"""Ways to tell people: webhook, mail, the log, or several of them."""
