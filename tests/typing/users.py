"""What a user's code is told about types: `mypy`, which is a part of `make lint`, checks this file.

A tensor in gives a tensor type out. An error that mypy must find has a comment, of which mypy says
when it is needed no more.
"""

# mypy: disable-error-code="empty-body"

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc

Array = NDArray[Any]


class Tensor:
    """What mypy knows of torch's tensors."""

    shape: tuple[int, ...]

    def cpu(self, memory_format: object = None) -> "Tensor": ...

    def __array__(self, dtype: Any = None) -> Array: ...


class Lazy:
    """What mypy knows of dask's arrays."""

    def compute(self, **options: object) -> Array: ...

    def __array__(self, dtype: Any = None) -> Array: ...


def curves(tensor: Tensor, lazy: Lazy, array: Array) -> None:
    assert_type(ecc.euler_curve(tensor, 8, superlevel=True), ecc.EulerCurve[Tensor])
    assert_type(ecc.euler_curve(array), ecc.EulerCurve[Array])
    assert_type(ecc.euler_curve([[0, 1]], "exact"), ecc.EulerCurve[Array])
    assert_type(ecc.euler_curve(lazy, [0]), ecc.EulerCurve[Any])
    t, chi = ecc.euler_curve(tensor, mask=tensor)
    assert_type(t, Tensor)
    assert_type(chi, Tensor)
    assert_type(ecc.euler_curve(tensor).connectivity, int | None)
    assert_type(ecc.euler_curve_shards([tensor, tensor]), ecc.EulerCurve[Tensor])


def coefficients(tensor: Tensor, lazy: Lazy, array: Array) -> None:
    assert_type(ecc.euler_coefficients(tensor), Tensor)
    assert_type(ecc.euler_coefficients(lazy), Lazy)
    assert_type(ecc.euler_coefficients(array), NDArray[np.int8])


def regions(tensor: Tensor, lazy: Lazy, array: Array) -> None:
    assert_type(ecc.region_curves(tensor, tensor), ecc.RegionCurves[Tensor])
    assert_type(ecc.region_curves(lazy, lazy, [0]), ecc.RegionCurves[Any])
    assert_type(ecc.region_curves(array, array).select(1), ecc.EulerCurve[Array])


def transforms(tensor: Tensor, array: Array) -> None:
    transform = ecc.euler_transform(tensor, weighted=True)
    assert_type(transform, ecc.EulerTransform[Tensor])
    assert_type(ecc.smooth_transform(transform).values, Tensor)
    assert_type(ecc.euler_transform(array).values, Array)
    assert_type(ecc.region_transforms(tensor).select(1), ecc.EulerTransform[Tensor])


def order(curve: ecc.EulerCurve) -> bool:
    return curve.superlevel


def wrong(array: Array) -> None:
    ecc.euler_curve(array, smooth=2)  # type: ignore[call-overload]
    ecc.euler_curve(array, superlevel="no")  # type: ignore[call-overload]
