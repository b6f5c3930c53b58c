"""Lists the modules of a package: a new file there is found, without an entry elsewhere."""

import importlib
import pkgutil
from types import ModuleType


def modules_of(package: str) -> list[ModuleType]:
    """Returns the modules of a package, imported, in the order of their names."""
    parent = importlib.import_module(package)
    names = sorted(found.name for found in pkgutil.iter_modules(parent.__path__))
    return [importlib.import_module(f"{package}.{name}") for name in names]
