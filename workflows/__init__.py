"""The app's own workflows: each module here is imported at start, and registers what it has by `@workflow`."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
