"""Activities of the batches pipeline, and the pure rules beside them."""
