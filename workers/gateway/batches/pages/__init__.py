"""Pages of cases and batches."""
