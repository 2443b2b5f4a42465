"""Import the libraries of the package's extras."""

import importlib
from types import ModuleType

INSTALL = 'pip install ".[{}]"'
"""How an extra is installed, in a clone of the repository."""


def import_optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module, or raise ImportError with the extra of napari-ecc that installs it.

    `purpose` is what the module is needed for, the beginning of the message.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != library:
            raise
        message = f"{purpose} needs {library}: {INSTALL.format(extra)}"
        raise ImportError(message, name=library) from error
