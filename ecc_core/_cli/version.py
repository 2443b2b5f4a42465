"""The version of the installed package, and the system that it runs on."""

import importlib
import os
import platform
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, requires
from importlib.metadata import version as installed_version

NAME = "napari-ecc"


@cache
def version() -> str:
    """Return the version of the installed distribution, "unknown" for a checkout on the path."""
    try:
        return installed_version(NAME)
    except PackageNotFoundError:
        return "unknown"


def system() -> Iterator[str]:
    """Yield the lines of a fault report: versions, processor and CUDA devices."""
    yield f"{NAME} {version()}"
    yield f"Python {platform.python_version()}, {platform.platform()}, {platform.machine()}"
    yield f"cores {os.cpu_count()}"
    asked = {NAME}
    if version() != "unknown":
        asked = {_name(requirement) for requirement in requires(NAME) or ()}
    for found in sorted(distributions(), key=lambda found: found.name.lower()):
        if _name(found.name) in asked or found.name.startswith("cupy"):
            yield f"{found.name} {found.version}"
    yield kernels()
    try:
        runtime = importlib.import_module("cupy").cuda.runtime
        for device in range(runtime.getDeviceCount()):
            name = runtime.getDeviceProperties(device)["name"].decode()
            yield f"CUDA device {device}: {name}, driver {runtime.driverGetVersion()}"
    except Exception as error:  # Any error of CuPy belongs in the report.
        yield f"CUDA: none ({type(error).__name__}: {error})".splitlines()[0]


def kernels() -> str:
    """Return a line about the folder of compiled kernels."""
    from ecc_core._backends.cpu.kernel_cache import cache_folder

    folder = cache_folder()
    size = sum(file.stat().st_size for file in folder.rglob("*.nb?"))
    return f"kernels {size / 1e6:.1f} MB in {folder}"


def _name(requirement: str) -> str:
    """Return the name of a requirement, as PEP 503 normalizes it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()
