"""Import types: each module with a `TYPE` is one."""

from domain.spreadsheets.types.registry import SheetTypes, discover

__all__ = ["SheetTypes", "discover"]
