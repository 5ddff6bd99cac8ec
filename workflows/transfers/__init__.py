"""Workflows of `transfers`: events, and the jobs that they start."""
