"""What NaN in an image means, which the argument `nan` says.

With "raise" it is an error, whose message all backends have from `nan_message`. With "omit" a point
with NaN never enters, as if `mask` left it out: its value is one that no threshold reaches.
"""

from typing import Any

POLICIES = ("raise", "omit")


def check_nan(nan: Any) -> str:
    """Return the argument `nan`."""
    if not isinstance(nan, str) or nan not in POLICIES:
        raise ValueError(f'`nan` must be "raise" or "omit", got {nan!r}')
    return nan
