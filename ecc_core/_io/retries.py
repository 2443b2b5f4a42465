"""Repeated attempts to read from remote stores, which fail now and then."""

import re
import time
from collections.abc import Callable
from gzip import BadGzipFile
from typing import TypeVar

T = TypeVar("T")

DELAYS = (0.5, 2.0, 8.0)
"""Seconds to wait before each further attempt."""
LASTING = (
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
    BadGzipFile,
)
"""Errors of the operating system that another attempt would raise again."""
BUSY = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of a web server that may answer later."""
SECRETS = re.compile(
    r"(?<=://)[^/@\s]+(?=@)"  # User and password.
    r"|(?<=[?&])((?:X-Amz-[\w-]+|AWSAccessKeyId|Signature|sig|(?:access_)?token|key)=)[^&\s'\"]+",
    re.IGNORECASE,
)


def retried(read: Callable[[], T]) -> T:
    """Call a function that reads, again if its store was busy or the connection was lost."""
    for delay in DELAYS:
        try:
            return read()
        except Exception as error:  # Libraries of stores raise errors of their own types.
            if not _may_pass(error):
                raise
        time.sleep(delay)
    return read()


def _may_pass(error: Exception) -> bool:
    """Whether a store was busy, or the connection to it was lost."""
    if isinstance(error, LASTING):
        return False
    return isinstance(error, OSError) or getattr(error, "status", None) in BUSY


def without_secrets(text: str) -> str:
    """Return a text with ``***`` instead of the credentials in addresses."""
    return SECRETS.sub(lambda found: f"{found[1] or ''}***", text)
