"""Euler characteristic curves and transforms of 2-D and 3-D images: exact and fast.

The public names are what the modules below list: functions, and the classes of their results.
"""

import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ecc_core._warmup import *
    from ecc_core.coefficients import *
    from ecc_core.components import *
    from ecc_core.curves import *
    from ecc_core.geometry import *
    from ecc_core.matching import *
    from ecc_core.persistence import *
    from ecc_core.regions import *
    from ecc_core.shards import *
    from ecc_core.simplicial import *
    from ecc_core.surfaces import *
    from ecc_core.topology import *
    from ecc_core.transforms import *

# A name is looked for in this order, and each of these modules takes a while to import: those
# that many others need come first.
_MODULES = (
    "curves",
    "coefficients",
    "topology",
    "components",
    "geometry",
    "matching",
    "persistence",
    "regions",
    "shards",
    "simplicial",
    "surfaces",
    "transforms",
    "_warmup",
)
_SUBMODULES = (
    *(name for name in _MODULES if not name.startswith("_")),
    "dask",
    "errors",
    "features",
    "io",
    "nn",
    "plotting",
    "results",
    "testing",
)


def _modules() -> Iterator[ModuleType]:
    """Import the modules of the public names, one after the other."""
    return (importlib.import_module(f"ecc_core.{module}") for module in _MODULES)


def __getattr__(name: str) -> Any:
    """Import names and public submodules when they are first used, which keeps `ecc` quick."""
    if name in _SUBMODULES:
        return importlib.import_module(f"ecc_core.{name}")
    if name == "__all__":
        names = {public for module in _modules() for public in module.__all__}
        return globals().setdefault(name, sorted(names))
    if not name.startswith("_"):
        for module in _modules():
            if name in module.__all__:
                return globals().setdefault(name, getattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
