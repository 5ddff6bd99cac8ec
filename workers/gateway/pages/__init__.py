"""Pages for people: upload, columns, values, progress, results and the inbox."""
