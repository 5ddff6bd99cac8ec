"""What commands know of imports alone."""
