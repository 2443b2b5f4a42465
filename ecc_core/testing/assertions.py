"""Exact comparison of results: values, dtype, shape, array library and device."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["assert_arrays_equal", "assert_curves_equal", "assert_regions_equal", "to_numpy"]


def to_numpy(array: Any) -> NDArray[Any]:
    """Return a NumPy, CuPy or torch array as a NumPy array, copied from its device if need be.

    Parameters
    ----------
    array : array
        An array of any of these libraries.

    Returns
    -------
    numpy.ndarray
    """
    if hasattr(array, "get"):  # CuPy
        return np.asarray(array.get())
    if hasattr(array, "detach"):  # torch
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def _device(array: Any) -> Any:
    return getattr(array, "device", "cpu")  # NumPy arrays have no device before NumPy 2


def assert_arrays_equal(actual: Any, desired: ArrayLike, *, like: Any = None) -> None:
    """Raise AssertionError unless two arrays agree in dtype, shape and every value.

    Parameters
    ----------
    actual : array
        What was computed.
    desired : array_like
        What it must be, a NumPy array or a list. NaN equals NaN; the byte order is no part of
        the dtype.
    like : array, optional
        `actual` must be of this array's library and on its device. A NumPy array by default.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.testing import assert_arrays_equal
    >>> assert_arrays_equal(np.array([1, 2]), np.array([1, 2]))
    >>> assert_arrays_equal(np.array([1.0, 2.0]), np.array([1, 2]))
    Traceback (most recent call last):
    ...
    AssertionError: dtype is float64, must be int64
    """
    like = np.empty(0) if like is None else like
    kind = np.ndarray if isinstance(like, np.ndarray) else type(like)
    if not isinstance(actual, kind):
        raise AssertionError(f"array is a {type(actual)}, must be a {kind}")
    if _device(actual) != _device(like):
        raise AssertionError(f"device is {_device(actual)}, must be {_device(like)}")
    found, desired = to_numpy(actual), np.asarray(desired)
    if found.dtype.newbyteorder("=") != desired.dtype.newbyteorder("="):
        raise AssertionError(f"dtype is {found.dtype}, must be {desired.dtype}")
    if found.shape != desired.shape:
        raise AssertionError(f"shape is {found.shape}, must be {desired.shape}")
    np.testing.assert_array_equal(found, desired)


def _assert_fields(actual: Any, like: Any, **desired: ArrayLike | None) -> None:
    """Raise AssertionError unless a result has exactly these arrays; any values for None."""
    fields = getattr(type(actual), "_fields", None)
    if fields != tuple(desired):
        raise AssertionError(f"result has the fields {fields}, must have {tuple(desired)}")
    for name, array in desired.items():
        found = getattr(actual, name)
        assert_arrays_equal(found, to_numpy(found) if array is None else array, like=like)


def assert_curves_equal(
    actual: Any, values: ArrayLike, *, thresholds: ArrayLike | None = None, like: Any = None
) -> None:
    """Raise AssertionError unless an ``EulerCurve`` is exactly this one.

    Parameters
    ----------
    actual : EulerCurve
        The computed result. Its values must be int64.
    values : array_like of int, shape batch + (n,)
        The expected Euler characteristics.
    thresholds : array_like, shape (n,), optional
        Thresholds it must have, dtype included. Only their number is checked by default.
    like : array, optional
        Both arrays must be of this array's library and on its device. NumPy by default.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> import numpy as np
    >>> from ecc_core.testing import assert_curves_equal
    >>> class EulerCurve(NamedTuple):
    ...     thresholds: np.ndarray
    ...     values: np.ndarray
    >>> assert_curves_equal(EulerCurve(np.array([0.0, 0.5]), np.array([1, 2])), [1, 2])
    """
    desired = np.asarray(values, dtype=np.int64)
    _assert_fields(actual, like, thresholds=thresholds, values=desired)
    if tuple(actual.thresholds.shape) != desired.shape[-1:]:
        raise AssertionError(
            f"thresholds have shape {actual.thresholds.shape}, must have {desired.shape[-1:]}"
        )


def assert_regions_equal(
    actual: Any,
    labels: ArrayLike,
    values: ArrayLike,
    *,
    thresholds: ArrayLike | None = None,
    like: Any = None,
) -> None:
    """Raise AssertionError unless a ``RegionCurves`` is exactly this one.

    Parameters
    ----------
    actual : RegionCurves
        The computed result. Its values must be int64.
    labels : array_like, shape (n_labels,)
        The expected labels, with their dtype.
    values : array_like of int, shape (n_labels, n)
        The expected Euler characteristics.
    thresholds : array_like, shape (n,), optional
        The expected thresholds, with their dtype. Not checked by default.
    like : array, optional
        All arrays must be of this array's library and on its device. NumPy by default.
    """
    desired = np.asarray(values, dtype=np.int64)
    _assert_fields(actual, like, labels=labels, thresholds=thresholds, values=desired)
