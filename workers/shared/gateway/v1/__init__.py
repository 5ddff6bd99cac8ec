"""The API of all pipelines, version 1."""
