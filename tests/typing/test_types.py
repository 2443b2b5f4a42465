"""A tensor in gives a tensor type out: mypy --strict on a few lines of a user's code."""

import pytest

api = pytest.importorskip("mypy.api")

CODE = """
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import ecc_core as ecc


class Tensor:  # as mypy sees torch's
    shape: tuple[int, ...]
    def cpu(self, memory_format: object = None) -> "Tensor": ...
    def __array__(self, dtype: Any = None) -> NDArray[Any]: ...


class Lazy:  # as mypy sees dask's array
    def compute(self, **options: object) -> NDArray[Any]: ...
    def __array__(self, dtype: Any = None) -> NDArray[Any]: ...


tensor, lazy, array = Tensor(), Lazy(), np.zeros((4, 4))
Array = NDArray[Any]

assert_type(ecc.euler_curve(tensor, 8, superlevel=True), ecc.EulerCurve[Tensor])
assert_type(ecc.euler_curve(array), ecc.EulerCurve[Array])
assert_type(ecc.euler_curve([[0, 1]], "exact"), ecc.EulerCurve[Array])
assert_type(ecc.euler_curve(lazy, [0]), ecc.EulerCurve[Any])
t, chi = ecc.euler_curve(tensor, mask=tensor)
assert_type(t, Tensor)
assert_type(chi, Tensor)
assert_type(ecc.euler_coefficients(tensor), Tensor)
assert_type(ecc.euler_coefficients(lazy), Lazy)
assert_type(ecc.euler_coefficients(array), NDArray[np.int8])
assert_type(ecc.region_curves(tensor, tensor), ecc.RegionCurves[Tensor])
assert_type(ecc.region_curves(lazy, lazy, [0]), ecc.RegionCurves[Any])
assert_type(ecc.region_curves(array, array).select(1), ecc.EulerCurve[Array])
assert_type(ecc.euler_curve_shards([tensor, tensor]), ecc.EulerCurve[Tensor])
transform = ecc.euler_transform(tensor, weighted=True)
assert_type(transform, ecc.EulerTransform[Tensor])
assert_type(ecc.smooth_transform(transform).values, Tensor)
assert_type(ecc.euler_transform(array).values, Array)
assert_type(ecc.region_transforms(tensor).select(1), ecc.EulerTransform[Tensor])
assert_type(ecc.euler_curve(tensor).connectivity, int | None)


def order(curve: ecc.EulerCurve) -> bool:
    return curve.superlevel
"""
WRONG = ["ecc.euler_curve(array, smooth=2)", 'ecc.euler_curve(array, superlevel="no")']
CONFIG = """
[mypy]
strict = True
disable_error_code = empty-body
[mypy-ecc_core.*]
ignore_errors = True
[mypy-torch.*,numba.*,llvmlite.*,dask.*,matplotlib.*,pandas.*,xarray.*,cupy.*]
follow_imports = skip
ignore_missing_imports = True
"""


def test_types_of_results(tmp_path):
    lines = CODE.splitlines()
    (tmp_path / "user.py").write_text("\n".join([*lines, *WRONG]) + "\n")
    (tmp_path / "mypy.ini").write_text(CONFIG)
    options = ["--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", str(tmp_path / "cache")]
    found, failed, _ = api.run([*options, str(tmp_path / "user.py")])
    assert not failed
    errors = {int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line}
    assert errors == {len(lines) + 1, len(lines) + 2}, found
