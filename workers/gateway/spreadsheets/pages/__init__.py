"""Pages of spreadsheet imports: upload, columns, values, progress and results."""
