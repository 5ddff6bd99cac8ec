"""What the pipelines ask of Temporal itself."""
