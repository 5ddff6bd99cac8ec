"""What can be done to a transfer: start it, find it, answer it, send it again."""
