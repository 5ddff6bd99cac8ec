"""OpenPGP by GnuPG: each keyring lives in a home of its own and ends with its step."""

from adapters.files.openpgp.keyring import GnuPg

__all__ = ["GnuPg"]
