"""AWS behind the ports of batches."""
