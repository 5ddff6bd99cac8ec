"""The HTTP gateway of spreadsheet imports: JSON API, pages and inbox."""
