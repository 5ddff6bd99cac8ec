"""Job types that come with docflow, one file each."""
