"""Looks for viruses with ClamAV's daemon."""

from adapters.scanning.clamd import Clamd, ClamdAddress, Timeouts

__all__ = ["Clamd", "ClamdAddress", "Timeouts"]
