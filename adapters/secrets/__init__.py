"""Secrets that others keep, found by reference."""
