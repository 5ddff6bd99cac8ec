"""Looks for viruses with ClamAV's daemon."""

from adapters.scanning.clamd import Clamd, ClamdAddress

__all__ = ["Clamd", "ClamdAddress"]
