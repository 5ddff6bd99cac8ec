"""Activities of the spreadsheets pipeline, and the pure rules beside them."""
