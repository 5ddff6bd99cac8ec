"""All tables of docflow, for what works on whichever there are."""

import importlib
import pkgutil

from adapters.database import models
from adapters.database.models.base import DOMAIN, STAGED, data_of, key_of, metadata

__all__ = ["DOMAIN", "STAGED", "data_of", "key_of", "metadata"]

for _module in pkgutil.iter_modules(models.__path__, f"{models.__name__}."):
    importlib.import_module(_module.name)
