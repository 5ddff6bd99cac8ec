"""Looks for viruses with ClamAV's daemon."""

from adapters.scanning.clamd import Clamd, ClamdAddress, Patience

__all__ = ["Clamd", "ClamdAddress", "Patience"]
