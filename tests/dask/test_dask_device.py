"""Chunks of a device's array library stay there: no task turns them into NumPy arrays.

The library stands in for CuPy, and the CPU counts; tests/gpu/test_dask.py is about CuPy itself.
"""

from types import SimpleNamespace
from typing import Any

import dask.array as da
import numpy as np
import pytest
from dask.array.dispatch import concatenate_lookup, numel_lookup

import ecc_core as ecc
from ecc_core import _arrays
from ecc_core._arrays.adapters.numpy import NumPy
from ecc_core._backends import registry
from ecc_core._blocks.window import sums_of_groups
from ecc_core._blocks.work import Work, add_tables
from ecc_core._request.filtration import Filtration
from ecc_core.dask import euler_curve_blocks, local_curves, region_curves
from ecc_core.quantities.euler import CurveValues

LEVELS = np.arange(-1, 7)


class DeviceArray(np.ndarray):
    """Stays what it is in NumPy's functions; `np.asarray` makes another of it."""

    def __array_function__(self, function: Any, types: Any, inputs: Any, options: Any) -> Any:
        result = super().__array_function__(function, types, inputs, options)
        return result.view(DeviceArray) if isinstance(result, np.ndarray) else result


class Adapter(NumPy):
    """Arrays that their backend takes as they are."""

    name = "cupy"

    def supports(self, array: Any) -> bool:
        return isinstance(array, DeviceArray)

    def device(self, array: Any) -> str:
        return "stand-in:0"

    def unwrap(self, array: Any, name: str) -> Any:
        return array

    def on_host(self, array: Any) -> np.ndarray:
        return array.view(np.ndarray)


concatenate_lookup.register(DeviceArray, np.concatenate)
numel_lookup.register(DeviceArray, np.size)


@pytest.fixture(autouse=True)
def backend(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A backend that takes arrays of the device only; returns what it was asked for."""
    asked: list[str] = []

    def counting(name: str) -> Any:
        def function(*arrays: Any, mask: Any = None, **options: Any) -> Any:
            for array in (*arrays[:2], mask) if name == "region_curves" else (arrays[0], mask):
                assert array is None or type(array) is DeviceArray
            asked.append(name)
            *arrays, filtration = arrays
            given = [*map(np.asarray, arrays), filtration]
            if name != "region_curves":
                options["mask"] = None if mask is None else np.asarray(mask)
            found = getattr(registry.backend("cpu"), name)(*given, **options)
            if isinstance(found, tuple):
                return tuple(part.view(DeviceArray) for part in found)
            return found.view(DeviceArray)

        return function

    names = ("curve", "coefficients", "region_curves")
    module = SimpleNamespace(**{name: counting(name) for name in names})
    monkeypatch.setattr(_arrays, "_adapters", [Adapter(), *_arrays._adapters])
    monkeypatch.setattr(_arrays, "_by_type", {})
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    registry.register("stand-in", module)
    return asked


def on_device(array: np.ndarray, chunks: int = 3) -> da.Array:
    meta = np.empty((0,) * array.ndim, array.dtype).view(DeviceArray)
    return da.from_array(array, chunks=chunks).map_blocks(lambda b: b.view(DeviceArray), meta=meta)


@pytest.fixture
def image() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 6, (7, 6, 8), dtype=np.uint8)


def compute(array: Any) -> np.ndarray:
    """The values of a dask array, which says and gives arrays of the device."""
    assert type(array._meta) is DeviceArray
    values = array.compute()
    assert type(values) is DeviceArray
    return values.view(np.ndarray)


@pytest.mark.parametrize("connectivity", [1, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_curves(image, connectivity, masked):
    mask = image != 2 if masked else None
    array = on_device(image)
    where = on_device(mask) if masked else None
    lazy = ecc.euler_curve(array, LEVELS, connectivity=connectivity, mask=where).values
    blocks = euler_curve_blocks(array, LEVELS, connectivity=connectivity, mask=where)
    found = compute(lazy)
    rows = compute(blocks)
    expected = ecc.euler_curve(image, LEVELS, connectivity=connectivity, mask=mask).values
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(rows.sum(axis=0).cumsum(), expected)


def test_tiles_coefficients_and_numbers(image, backend):
    array = on_device(image)
    assert compute(local_curves(array, 3, LEVELS).values).shape == (3, 2, 3, LEVELS.size)
    coefficients = compute(ecc.euler_coefficients(array))
    assert coefficients.sum() == compute(ecc.euler_curve(array, [9]).values)[0] == 1
    assert backend.count("coefficients") == array.npartitions
    tilted = ecc.euler_curve(array, [99], direction=(1, 0, 0)).values
    assert compute(tilted) == [1]


def test_regions(image):
    labels = (image > 2).astype(np.int32) + 1
    array = on_device(image)
    where = on_device(labels)
    rows = ecc.region_curves(image, labels, LEVELS).values
    found = ecc.region_curves(array, where, LEVELS)
    np.testing.assert_array_equal(compute(found.values), rows)
    found = region_curves(array, where, LEVELS, ids=[2, 7])
    np.testing.assert_array_equal(compute(found.values), [rows[1], np.zeros(LEVELS.size)])


def test_one_plane_is_copied_between_halves(image, monkeypatch):
    """The block before it needs the first slice of the second half."""
    copied = []

    def beside(self: Adapter, array: Any, other: Any) -> Any:
        if array.ndim > 1:
            copied.append(array.shape)
        return array

    monkeypatch.setattr(Adapter, "beside", beside)
    halves = on_device(image, ((3, 4), 6, 8))
    values = compute(ecc.euler_curve(halves, LEVELS).values)
    np.testing.assert_array_equal(values, ecc.euler_curve(image, LEVELS).values)
    assert copied == [(1, 1, 6, 8)]


@pytest.mark.parametrize("labelled", [False, True])
def test_stacks(image, labelled):
    """Sums of a group are kept in memory of the host."""
    arrays = [image.view(DeviceArray), (image > 2).astype(np.int32).view(DeviceArray)]

    def read(box: Any) -> tuple[np.ndarray, ...]:
        return tuple(array[box] for array in arrays[: 1 + labelled])

    curve = CurveValues(LEVELS, Filtration(3, 3))
    work = Work(read, ((3, 4), (6,), (5, 3)), curve, regions=labelled)
    groups = work.groups(1, side=9)
    every = range(len(groups))
    sums = [values for _, values in sums_of_groups(work, groups, every, workers=1)]
    assert {type(values) for values in sums} == {np.ndarray}
    total = add_tables(sums)[0, 1:] if labelled else sum(sums)
    shown = np.where(image > 2, image, 9) if labelled else image
    expected = ecc.euler_curve(shown, LEVELS, mask=shown < 9)
    np.testing.assert_array_equal(total, expected.values)


def test_a_mask_of_another_library(image):
    with pytest.raises(ValueError, match="`mask` must have chunks of the image's library, cupy"):
        ecc.euler_curve(on_device(image), LEVELS, mask=image > 2)
    with pytest.raises(ValueError, match="`labels` must have chunks of the image's library, cupy"):
        ecc.region_curves(on_device(image), image, LEVELS)
