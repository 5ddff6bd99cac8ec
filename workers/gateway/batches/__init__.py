"""What the gateway serves of batches."""
