"""Pages for people: what those of all pipelines share, sign-in and the inbox."""
