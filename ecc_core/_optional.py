"""Import the libraries of the package's extras."""

import importlib
from types import ModuleType

INSTALL = 'pip install ".[{}]"'
"""The command that installs an extra from a clone of the repository."""


def import_optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import a module, or raise ImportError with the extra of napari-ecc that installs it.

    `purpose`, with which the message begins, is what needs the module.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise naming_extra(error, module, extra=extra, purpose=purpose) from error


def naming_extra(
    error: ModuleNotFoundError, module: str, *, extra: str, purpose: str
) -> ImportError:
    """Return the error for a module that could not be imported, which names its extra.

    If the library is installed but imports another one that is missing, return the error itself.
    """
    library = module.partition(".")[0]
    if (error.name or "").partition(".")[0] != library:
        return error
    return ImportError(f"{purpose} needs {library}: {INSTALL.format(extra)}", name=library)
