"""Bytes of transfers in the blob store: between two actions, and kept to be sent again."""
