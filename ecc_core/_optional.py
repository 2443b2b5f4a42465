"""Import the libraries of the package's extras."""

import importlib
from types import ModuleType


def import_optional(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or raise an error that names the extra that installs it.

    Parameters
    ----------
    module : str
        Full name of the module, such as ``"pyarrow.parquet"``.
    extra : str
        The extra of napari-ecc that installs it.
    purpose : str
        What it is needed for, the start of the error's sentence.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If the module's library is not installed.

    Examples
    --------
    >>> from ecc_core._optional import import_optional
    >>> import_optional("json", extra="io", purpose="JSON").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != library:
            raise
        message = f"{purpose} needs {library}: pip install 'napari-ecc[{extra}]'"
        raise ImportError(message, name=library) from error
