"""Tables of the `batches` pipeline."""
