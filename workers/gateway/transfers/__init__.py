"""What the gateway serves of transfers."""
