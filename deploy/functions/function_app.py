"""What the host of Azure Functions looks for, in the folder that is published."""

from workers.imports.function_app import app

__all__ = ["app"]
