"""Tables of the spreadsheets pipeline, and of the people that its rows are about."""
